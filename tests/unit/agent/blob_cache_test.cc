#include "worker/agent/blob_cache.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(BlobCacheTest, ForgetsWhatWasUsedLongestAgo) {
  BlobCache cache(10);
  cache.Put("a", "aaaa");
  cache.Put("b", "bbbb");
  EXPECT_EQ(cache.Get("a"), "aaaa");  // used later than b
  cache.Put("c", "cccc");
  EXPECT_EQ(cache.Get("a"), "aaaa");
  EXPECT_EQ(cache.Get("b"), std::nullopt);
  EXPECT_EQ(cache.Get("c"), "cccc");
}

TEST(BlobCacheTest, DoesNotKeepWhatIsTooLargeNorCountTwice) {
  BlobCache cache(10);
  cache.Put("small", "12345");
  cache.Put("small", "12345");
  cache.Put("large", std::string(11, 'x'));
  EXPECT_EQ(cache.Get("large"), std::nullopt);
  cache.Put("other", "12345");
  EXPECT_EQ(cache.Get("small"), "12345");
  EXPECT_EQ(cache.Get("other"), "12345");
}

}  // namespace
}  // namespace fusion
