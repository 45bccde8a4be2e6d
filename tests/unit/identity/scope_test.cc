#include "server/identity/scope.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScopeTest, NoneAreAll) {
  const Scopes all;
  EXPECT_EQ(*Scopes::Parse({}), all);
  EXPECT_EQ(Scopes::Stored(""), all);
  EXPECT_EQ(all.Text(), "");
  for (const Scope scope : kAllScopes) EXPECT_TRUE(all.Has(scope));
}

TEST(ScopeTest, WhatIsStoredIsReadBack) {
  const Scopes scopes = *Scopes::Parse({"submit", "read", "submit"});
  EXPECT_EQ(scopes.Text(), "read submit");
  EXPECT_EQ(Scopes::Stored("read submit"), scopes);
  EXPECT_THAT(scopes.Names(), ElementsAre("read", "submit"));
  EXPECT_TRUE(scopes.Has(Scope::kSubmit));
  EXPECT_FALSE(scopes.Has(Scope::kManage));
}

// A damaged row, or one of a later version, must not become a token that opens everything.
TEST(ScopeTest, NamesThatAreNotKnownOpenNothing) {
  for (const char* text : {"fly", " ", "read_all", "READ"}) {
    const Scopes scopes = Scopes::Stored(text);
    EXPECT_FALSE(scopes.all()) << text;
    for (const Scope scope : kAllScopes) EXPECT_FALSE(scopes.Has(scope)) << text;
  }
  EXPECT_TRUE(Scopes::Stored("read fly").Has(Scope::kRead));
  const absl::Status status = Scopes::Parse({"read", "fly\n"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no \"fly\\n\"; there are read, submit, tune, manage, work"));
}

TEST(ScopeTest, NobodyGivesWhatHeDoesNotHave) {
  const Scopes all, read = *Scopes::Parse({"read"}), both = *Scopes::Parse({"read", "manage"}),
                    every = *Scopes::Parse({"read", "submit", "tune", "manage", "work"});
  EXPECT_TRUE(all.Contains(read) && all.Contains(all) && both.Contains(read) && both.Contains(both));
  EXPECT_FALSE(read.Contains(both));
  EXPECT_FALSE(read.Contains(all));
  EXPECT_FALSE(every.Contains(all)) << "what a later version adds is not among them";
}

}  // namespace
}  // namespace fusion
