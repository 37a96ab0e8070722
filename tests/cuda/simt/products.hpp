// Products of warpgroups, which run while their threads go on (warpgroup.cuh).
//
// A product is computed when it starts. Its sums are not numbers until the thread waits for it, and what it
// reads must be the same then. Warps of a group need not meet: each multiplies its own rows.
#pragma once

#include <cstring>
#include <vector>

#include "fibers.hpp"
#include "tiles.hpp"

namespace simt {

struct Product {
    float* sums;
    std::vector<float> results;
    const unsigned* a;
    std::vector<unsigned> a_before;
    const unsigned char* rows;
    std::vector<unsigned char> rows_before;  // of the first lane of a warp only
    int step, group;
    Site site;
};

// What a thread has of products.
struct Products {
    std::vector<Product> running;
    int commits = 0;
    bool begun = false;     // it may start products
    bool published = true;  // products see what it has copied to shared memory
};

inline Products products[MOST_THREADS];

// Return the words of b of a lane, of columns 8n to 8n + 7, as Tile has them.
inline void rows_of_lane(const unsigned char* rows, int step, int n, int lane, unsigned (&b)[2]) {
    const int row = 8 * n + lane / 4;
    for (int part = 0; part < 2; ++part) {
        const int piece = (2 * step + part) ^ row % 8;
        memcpy(&b[part], rows + row * 128 + piece * 16 + lane % 4 * 4, 4);
    }
}

inline void multiply_rows(void* const* records) {
    const Product& first = *(const Product*)records[0];
    for (int n = 0; n < (int)first.results.size() / 4; ++n) {
        Matrices matrices;
        for (int lane = 0; lane < 32; ++lane) {
            Product& mine = *(Product*)records[lane];
            unsigned b[2];
            rows_of_lane(mine.rows, mine.step, n, lane, b);
            matrices.take(lane, {&mine.results[4 * n], mine.a, b});
        }
        matrices.multiply();
        for (int lane = 0; lane < 32; ++lane) matrices.give(lane, &((Product*)records[lane])->results[4 * n]);
    }
}

// What a product starts from: the results of the one before, if it still runs, or the sums of the thread.
inline std::vector<float> sums_before(const Products& mine, const float* sums, int count) {
    if (!mine.running.empty()) return mine.running.back().results;
    return std::vector<float>(sums, sums + count);
}

void publish_copies() { products[running.thread].published = true; }

void begin_products() { products[running.thread].begun = true; }

void start_product(float* sums, int count, const unsigned* a, const unsigned char* rows, int step,
                   Site site) {
    Products& mine = products[running.thread];
    if (!mine.begun) fail(site, "multiply_group without begin_products");
    if ((unsigned long long)rows % 1024)
        fail(site, "multiply_group of rows that are not aligned to 1024 bytes");
    if (!is_shared(rows, count * 2 * 128)) fail(site, "multiply_group of rows that are not in shared memory");
    for (int thread = 0; thread < running.num_threads; ++thread) {
        if (!products[thread].published) fail(site, "thread %d copied without publish_to_products", thread);
    }
    if (!mine.running.empty() && mine.running[0].sums != sums) fail(site, "multiply_group with other sums");
    Product product = {sums, sums_before(mine, sums, count), a, {a, a + 4}, rows, {}, step, mine.commits,
                       site};
    if (running.thread % 32 == 0) product.rows_before.assign(rows, rows + count * 2 * 128);
    meet_warp(multiply_rows, &product, "multiply_group", site);
    memset(sums, 0xff, count * sizeof(float));
    mine.running.push_back(product);
}

void commit_products() {
    ++products[running.thread].commits;
    products[running.thread].begun = false;
}

void finish_products(int pending, Site site) {
    Products& mine = products[running.thread];
    while (!mine.running.empty() && mine.running[0].group < mine.commits - pending) {
        const Product& done = mine.running[0];
        if (memcmp(done.a, done.a_before.data(), 16)) fail(site, "`a` was changed while products read it");
        if (memcmp(done.rows, done.rows_before.data(), done.rows_before.size()))
            fail(site, "rows were changed while products read them");
        if (mine.running.size() == 1) memcpy(done.sums, done.results.data(), done.results.size() * 4);
        mine.running.erase(mine.running.begin());
    }
}

inline void reset_products(int thread) { products[thread] = Products(); }

// Return where a product was started that the thread did not wait for; a null file if there is none.
inline Site unfinished_product(int thread) {
    const std::vector<Product>& running = products[thread].running;
    return running.empty() ? Site{nullptr, 0} : running[0].site;
}

}  // namespace simt
