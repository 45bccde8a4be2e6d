#include <gmock/gmock.h>

#include "client/cli/render.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

v1::Token Token(const std::string& name, int64_t expires, int64_t revoked) {
  v1::Token token;
  token.set_name(name);
  token.set_principal("eva");
  token.set_role(v1::USER);
  token.mutable_create_time()->set_seconds(1000);
  if (expires > 0) token.mutable_expire_time()->set_seconds(expires);
  if (revoked > 0) token.mutable_revoke_time()->set_seconds(revoked);
  return token;
}

TEST(RenderIdentityTest, TokensSayWhatTheyOpen) {
  v1::ListTokensResponse response;
  *response.add_tokens() = Token("tokens/1", 0, 0);
  *response.add_tokens() = Token("tokens/2", 2000, 0);
  response.mutable_tokens(1)->add_scopes("read");
  response.mutable_tokens(1)->add_scopes("submit");
  *response.add_tokens() = Token("tokens/3", 0, 1500);
  EXPECT_EQ(TokenListText(response, 3000, {}),
            "token     principal  role  scopes       state    made                  expires\n"
            "tokens/1  eva        user  all          good     1970-01-01T00:16:40Z  never\n"
            "tokens/2  eva        user  read,submit  expired  1970-01-01T00:16:40Z  1970-01-01T00:33:20Z\n"
            "tokens/3  eva        user  all          revoked  1970-01-01T00:16:40Z  never\n");
  EXPECT_EQ(TokenListText({}, 0, {}), "no tokens\n");
}

TEST(RenderIdentityTest, TokensAsJson) {
  const Json json = TokenJson(Token("tokens/1", 0, 0), "fus_x");
  EXPECT_EQ(
      json.dump(),
      R"({"schema":"fusion.token/1","token":"tokens/1","principal":"eva","role":"user","scopes":[],)"
      R"("create_time":"1970-01-01T00:16:40Z","expire_time":null,"revoke_time":null,"secret":"fus_x"})");
  v1::ListTokensResponse response;
  *response.add_tokens() = Token("tokens/1", 0, 0);
  EXPECT_THAT(TokenListJson(response).dump(), Not(HasSubstr("secret")));
  EXPECT_EQ(TokenListJson(response)["tokens"].size(), 1u);
}

TEST(RenderIdentityTest, AuditEntries) {
  v1::ListAuditEntriesResponse response;
  v1::AuditEntry* entry = response.add_entries();
  entry->set_number(7);
  entry->mutable_time()->set_seconds(1000);
  entry->set_principal("eva");
  entry->set_role(v1::USER);
  entry->set_peer("ipv4:10.0.0.7:1");
  entry->set_method("/fusion.v1.OptimizerService/CancelJob");
  entry->set_subject("jobs/1");
  entry->set_outcome("OK");
  EXPECT_EQ(AuditText(response, {}),
            "time                  principal  role  outcome  call       subject  peer\n"
            "1970-01-01T00:16:40Z  eva        user  OK       CancelJob  jobs/1   ipv4:10.0.0.7:1\n");
  EXPECT_EQ(AuditJson(response)["entries"][0]["method"], "/fusion.v1.OptimizerService/CancelJob");
  EXPECT_EQ(AuditText({}, {}), "no entries\n");
}

}  // namespace
}  // namespace fusion
