// Places for jobs that are open: owners' turns, and who may have one beyond them.
#include "server/engine/admission/orders.h"

#include <gtest/gtest.h>

namespace tilewire::engine {
namespace {

TEST(Orders, OwnersTakeTurnsForPlaces) {
  Orders orders(3);
  for (const char* owner : {"a", "a", "b"}) {
    ASSERT_TRUE(orders.Free(owner, 0));
    orders.Take(owner, 0);
  }
  EXPECT_FALSE(orders.Free("a", 0));
  orders.Wait(1, "a", 0);
  orders.Wait(2, "a", 0);
  orders.Wait(3, "b", 0);
  EXPECT_EQ(orders.Next(), 0U);
  for (const Orders::Id next : {1, 3}) {
    orders.Leave("a");
    EXPECT_FALSE(orders.Free("a", 0)) << "others wait";
    ASSERT_EQ(orders.Next(), next);
    orders.Remove(next, true);
    orders.Take(next == 3 ? "b" : "a", 0);
  }
  EXPECT_EQ(orders.Next(), 0U);
}

TEST(Orders, WhoHasNoneMayHaveOneUpToAsManyAgain) {
  Orders orders(2);
  orders.Take("a", 0);
  orders.Take("a", 0);
  for (const char* owner : {"b", "c"}) {
    EXPECT_TRUE(orders.Free(owner, 0));
    orders.Take(owner, 0);
  }
  EXPECT_FALSE(orders.Free("d", 0));
  orders.Wait(1, "a", 0);
  orders.Wait(2, "d", 0);
  EXPECT_EQ(orders.Next(), 0U);
  orders.Leave("c");
  EXPECT_EQ(orders.Next(), 2U);
}

TEST(Orders, AnOwnersBoundHoldsNobodyElseUp) {
  Orders orders(4);
  orders.Take("a", 1);
  EXPECT_FALSE(orders.Free("a", 1));
  orders.Wait(1, "a", 1);
  EXPECT_EQ(orders.Next(), 0U);
  EXPECT_TRUE(orders.Free("b", 0));
  orders.Take("b", 0);
  orders.Leave("a");
  EXPECT_EQ(orders.Next(), 1U);
  orders.Remove(1, false);
  EXPECT_EQ(orders.Next(), 0U);
  EXPECT_TRUE(orders.Free("a", 1));
}

}  // namespace
}  // namespace tilewire::engine
