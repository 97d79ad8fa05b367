// Each figure is worked out by hand in the comment beside it.
#include <doctest/doctest.h>

#include "kernels/device/ops.hpp"

using namespace oomlab;

TEST_SUITE("op cost") {
    TEST_CASE("op cost: a matrix product moves weights, inputs and outputs once") {
        const OpCost c = cost(MatmulArgs{.rows = 8, .k = 4096, .n = 1024});
        CHECK(c.flops == 2.0 * 8 * 4096 * 1024);
        CHECK(c.bytes == 2.0 * (4096.0 * 1024 + 8 * 4096 + 8 * 1024));
        CHECK_FALSE(c.eight_bit);
        const OpCost q = cost(MatmulArgs{
            .rows = 8, .k = 4096, .n = 1024, .in_type = DType::fp8, .out_type = DType::bf16});
        CHECK(q.bytes == 4096.0 * 1024 + 8 * 4096 + 2.0 * 8 * 1024);
        CHECK(q.eight_bit);
    }

    TEST_CASE("op cost: attention grows with the context each row attends to") {
        // 3 rows of one sequence whose contexts are 5, 6 and 7; its 7 cached tokens are read once.
        const AttentionArgs a{.rows = 3,
                              .seqs = 1,
                              .heads = 8,
                              .kv_heads = 2,
                              .head_dim = 64,
                              .block_size = 16,
                              .context_tokens = 18,
                              .kv_tokens_read = 7};
        CHECK(cost(a).flops == 4.0 * 8 * 64 * 18);
        CHECK(cost(a).bytes == 2.0 * (2 * 3 * 8 * 64) + 2.0 * (2 * 7 * 2 * 64));
    }

    TEST_CASE("op cost: a residual is read and written besides") {
        const OpCost alone = cost(RmsNormArgs{.rows = 2, .width = 10});
        const OpCost with = cost(RmsNormArgs{.residual = 1, .rows = 2, .width = 10});
        CHECK(alone.bytes == 2.0 * (2 * 20 + 10));
        CHECK(with.bytes == 2.0 * (4 * 20 + 10));
    }

    TEST_CASE("op cost: what only moves bytes does no operations") {
        CHECK(cost(FillArgs{.elements = 100}).bytes == 200);
        CHECK(cost(EmbedArgs{.rows = 3, .width = 8, .vocab = 99}).bytes == 2.0 * 2 * 24 + 12);
        CHECK(cost(GatherArgs{.rows = 3, .width = 8}).flops == 0);
        CHECK(cost(KvAppendArgs{.rows = 2,
                                .heads = 4,
                                .kv_heads = 1,
                                .head_dim = 8,
                                .block_size = 16,
                                .cache_type = DType::fp8})
                  .bytes == 2.0 * 2 * 8 * (2 + 1) + 8);
        CHECK(cost(SampleArgs{.rows = 2, .vocab = 50}).bytes == 400 + 8);
        CHECK(cost(GatedActArgs{.rows = 2, .width = 5}).bytes == 60);
        CHECK(cost(RopeArgs{.rows = 2, .heads = 4, .kv_heads = 2, .head_dim = 8}).bytes ==
              2.0 * 96 * 2 + 8);
    }
}
