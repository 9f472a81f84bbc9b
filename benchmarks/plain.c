/* Matrix factorization by variational Bayes in plain C: what svmp's loops are measured against.
 *
 *     r_mn ~ Normal(u_m . v_n, 1),   u_mk, v_nk ~ Normal(0, 1),   q factorises over all scalars.
 *
 * The ratings are held twice, sorted by user and by item. A side (all users, or all items) has for
 * every key the K means of q and then its K variances, in float32. Keys of one side do not depend on
 * each other and share the threads; the K factors of a key go one after the other.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t other; /* key on the other side */
    float rating;
} Row;

typedef struct {
    int32_t keys;
    int64_t longest;      /* most rows of one key */
    const int64_t *first; /* where the rows of each key begin; keys + 1 numbers */
    const Row *rows;
    float *q;       /* keys x (K means, K variances) */
    float *natural; /* keys x (K of precision x mean, K precisions), for Algorithm 1 */
} Side;

enum { LINE = 16 }; /* floats in a cache line */

void set_threads(int threads) { omp_set_num_threads(threads); }

static inline float dot(int K, const float *a, const float *b)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < K; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Update the K factors of one key from all of its rows.
 *
 * The other side's means go into a tile, factor by factor, with the residual r - u.v beside it. For
 * each factor one pass takes the change of the factor before out of the residual and adds up the
 * sum, so that all K factors together take O(K) a rating.
 */
static inline __attribute__((always_inline)) void
update_key(int K, int64_t count, const Row *rows, float *q, const float *other, float *tile,
           float *residual, int64_t stride)
{
    float square[K], spread[K];
    memset(square, 0, sizeof square);
    memset(spread, 0, sizeof spread);
    for (int64_t start = 0; start < count; start += LINE) {
        int lines = count - start < LINE ? (int)(count - start) : LINE;
        for (int e = 0; e < lines; e++) {
            const float *v = other + (int64_t)rows[start + e].other * 2 * K;
            residual[start + e] = rows[start + e].rating - dot(K, q, v);
#pragma omp simd
            for (int k = 0; k < K; k++) {
                square[k] += v[k] * v[k];
                spread[k] += v[K + k];
            }
        }
        if (lines == LINE) { /* whole cache lines of the tile at once */
            const float *v[LINE];
            for (int e = 0; e < LINE; e++)
                v[e] = other + (int64_t)rows[start + e].other * 2 * K;
            for (int k = 0; k < K; k++)
                for (int e = 0; e < LINE; e++)
                    tile[k * stride + start + e] = v[e][k];
        } else
            for (int e = 0; e < lines; e++)
                for (int k = 0; k < K; k++)
                    tile[k * stride + start + e] = other[(int64_t)rows[start + e].other * 2 * K + k];
    }
    float change = 0;
    const float *before = tile;
    for (int k = 0; k < K; k++) {
        const float *a = tile + k * stride;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t e = 0; e < count; e++) {
            residual[e] -= change * before[e];
            sum += a[e] * residual[e];
        }
        float precision = 1 + square[k] + spread[k], mean = (sum + q[k] * square[k]) / precision;
        change = mean - q[k];
        before = a;
        q[k] = mean;
        q[K + k] = 1 / precision;
    }
}

static inline __attribute__((always_inline)) void sweep_of(int K, Side *side, const float *other)
{
    /* An odd number of cache lines: factors of one row do not fall into the same cache set. */
    int64_t stride = ((side->longest + LINE - 1) / LINE | 1) * LINE;
#pragma omp parallel
    {
        float *tile = aligned_alloc(64, sizeof(float) * (K + 1) * stride);
#pragma omp for schedule(dynamic, 16)
        for (int32_t m = 0; m < side->keys; m++) {
            int64_t first = side->first[m], count = side->first[m + 1] - first;
            int64_t width = ((count + LINE - 1) / LINE | 1) * LINE;
            update_key(K, count, side->rows + first, side->q + (int64_t)m * 2 * K, other, tile + stride,
                       tile, width);
        }
        free(tile);
    }
}

/* Update all keys of one side; the compiler sees K where it is one of those measured. */
static void sweep_side(int K, Side *side, const float *other)
{
    switch (K) {
    case 5: sweep_of(5, side, other); break;
    case 32: sweep_of(32, side, other); break;
    case 64: sweep_of(64, side, other); break;
    default: sweep_of(K, side, other);
    }
}

/* A sweep of full VB: all users, then all items. */
void sweep(int K, Side *users, Side *items)
{
    sweep_side(K, users, items->q);
    sweep_side(K, items, users->q);
}

/* KL(q || p) of one side. */
static double divergence(int K, const Side *side)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int32_t m = 0; m < side->keys; m++) {
        const float *mean = side->q + (int64_t)m * 2 * K, *variance = mean + K;
        double squares = 0, product = 1;
        for (int k = 0; k < K; k++) {
            squares += mean[k] * mean[k] + variance[k] - 1;
            product *= variance[k]; /* one logarithm for 16 variances */
            if (k % 16 == 15 || k == K - 1) {
                squares -= log(product);
                product = 1;
            }
        }
        sum += 0.5 * squares;
    }
    return sum;
}

static inline __attribute__((always_inline)) double energy_of(int K, const Side *users,
                                                              const float *other)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 16)
    for (int32_t m = 0; m < users->keys; m++) {
        const float *q = users->q + (int64_t)m * 2 * K;
        float square[K], spread[K];
        double squares = 0;
        memset(square, 0, sizeof square);
        memset(spread, 0, sizeof spread);
        for (int64_t e = users->first[m]; e < users->first[m + 1]; e++) {
            const float *v = other + (int64_t)users->rows[e].other * 2 * K;
            float residual = users->rows[e].rating - dot(K, q, v);
            squares += residual * residual;
#pragma omp simd
            for (int k = 0; k < K; k++) {
                square[k] += v[k] * v[k];
                spread[k] += v[K + k];
            }
        }
        for (int k = 0; k < K; k++) /* var(u v) = var(u) E[v^2] + E[u]^2 var(v) */
            squares += q[K + k] * (square[k] + spread[k]) + q[k] * q[k] * spread[k];
        sum += squares;
    }
    return sum;
}

/* The exact bound: E[log p(r | u, v)] - KL(q(u) || p(u)) - KL(q(v) || p(v)). */
double bound(int K, const Side *users, const Side *items)
{
    double energy;
    switch (K) {
    case 5: energy = energy_of(5, users, items->q); break;
    case 32: energy = energy_of(32, users, items->q); break;
    case 64: energy = energy_of(64, users, items->q); break;
    default: energy = energy_of(K, users, items->q);
    }
    double ratings = (double)users->first[users->keys];
    return -0.5 * (energy + ratings * log(2 * M_PI)) - divergence(K, users) - divergence(K, items);
}

/* SplitMix64, with a stream for each (seed, iteration, side, scalar): svmp's draws. */
static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline int64_t below(uint64_t bits, int64_t limit)
{
    return (int64_t)(((unsigned __int128)bits * (uint64_t)limit) >> 64);
}

/* Draw C different numbers below count (Floyd). */
static inline void draw(uint64_t state, int64_t count, int C, int64_t *chosen)
{
    for (int i = 0; i < C; i++) {
        int64_t top = count - C + i, pick = below(mix(state += GOLDEN), top + 1);
        for (int j = 0; j < i; j++)
            if (chosen[j] == pick) {
                pick = top;
                break;
            }
        chosen[i] = pick;
    }
}

static inline __attribute__((always_inline)) void
iterate_of(int K, int C, float rho, uint64_t stream, Side *side, const float *other)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int32_t m = 0; m < side->keys; m++) {
        int64_t count = side->first[m + 1] - side->first[m], chosen[C];
        int take = count < C ? (int)count : C;
        float scale = take ? (float)count / take : 0;
        float *q = side->q + (int64_t)m * 2 * K, *natural = side->natural + (int64_t)m * 2 * K;
        const Row *rows = side->rows + side->first[m];
        for (int k = 0; k < K; k++) {
            if (take == count)
                for (int i = 0; i < take; i++)
                    chosen[i] = i;
            else
                draw(mix(stream + ((uint64_t)m * K + k) * GOLDEN), count, take, chosen);
            float linear = 0, square = 0;
            for (int i = 0; i < take; i++) {
                Row row = rows[chosen[i]];
                const float *v = other + (int64_t)row.other * 2 * K;
                linear += v[k] * (row.rating - dot(K, q, v) + v[k] * q[k]);
                square += v[k] * v[k] + v[K + k];
            }
            natural[k] += rho * (scale * linear - natural[k]);
            natural[K + k] += rho * (1 + scale * square - natural[K + k]);
            q[k] = natural[k] / natural[K + k];
            q[K + k] = 1 / natural[K + k];
        }
    }
}

/* An iteration of Algorithm 1, option (a): every scalar reads C children of its own draw. */
void iterate(int K, int C, float rho, uint64_t seed, uint64_t iteration, Side *users, Side *items)
{
    uint64_t key = mix(mix(seed + GOLDEN) + iteration * GOLDEN);
    uint64_t of_users = mix(key + GOLDEN), of_items = mix(key + 2 * GOLDEN);
    if (K == 5) {
        iterate_of(5, C, rho, of_users, users, items->q);
        iterate_of(5, C, rho, of_items, items, users->q);
    } else {
        iterate_of(K, C, rho, of_users, users, items->q);
        iterate_of(K, C, rho, of_items, items, users->q);
    }
}
