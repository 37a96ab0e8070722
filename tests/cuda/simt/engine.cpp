// Runs the blocks of a launch one after the other, and the threads of a block as fibers.
//
// A thread runs until it waits for the others or ends. Between two barriers the warps take turns in a random
// order, and the lanes of a warp run in a random order, so that a missing barrier is likely to give a wrong
// result.
#include "engine.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "faults.hpp"
#include "fibers.hpp"
#include "memories.hpp"
#include "products.hpp"
#include "random.hpp"
#include "tiles.hpp"

namespace simt {

Running running;

namespace {

constexpr int LANES = 32;

enum class State { READY, AT_BARRIER, IN_WARP, EARLY, ENDED };

struct Copy {
    void* to;
    const void* from;
    int group;
    Site site;
};

struct Fiber {
    void* stack_pointer;
    State state;
    Site site;         // where it waits
    const char* name;  // of the function in which it waits
    int commits;       // groups of copies that were committed
    std::vector<Copy> copies;
};

// The lanes of a warp that wait in a function for the others.
struct Meeting {
    int arrived;
    Combine combine;
    Site site;
    void* records[LANES];
};

// A turn of a warp: the order in which its lanes run, once each.
struct Turn {
    int warp, lane, stride, left;
};

Stacks stacks;
DynamicShared dynamic_shared;
Memories memories;
Fiber fibers[MOST_THREADS];
Meeting meetings[MOST_THREADS / LANES];
const Launch* launch;
void* scheduler;  // its stack pointer while a fiber runs
Turn turn;
int num_ready[MOST_THREADS / LANES];  // lanes of each warp that do not wait
bool failed;
bool block_waited, any_waited;  // for the kernel before, in a launch that overlaps
char error[1024];
Random random_numbers(0);

const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Set the error; the first one counts.
void report(const char* format, ...) {
    if (failed) return;
    failed = true;
    int length = snprintf(error, sizeof error, "kernel %s, block (%d, %d, %d): ", launch->kernel,
                          running.block[0], running.block[1], running.block[2]);
    va_list values;
    va_start(values, format);
    vsnprintf(error + length, sizeof error - length, format, values);
    va_end(values);
}

// Return the thread that goes on next in this turn, or -1.
int next_thread() {
    while (turn.left > 0 && !failed) {
        const int thread = turn.warp * LANES + turn.lane;
        turn.lane = (turn.lane + turn.stride) & (LANES - 1);
        --turn.left;
        if (fibers[thread].state == State::READY) return thread;
    }
    return -1;
}

// Go on with the next thread, or with the scheduler after the last one.
void switch_to_next(void** from) {
    const int thread = next_thread();
    if (thread < 0) return simt_switch(from, scheduler);
    running.thread = thread;
    simt_switch(from, fibers[thread].stack_pointer);
}

// Let the thread rest until another one, or the scheduler, makes it ready.
void rest(State state) {
    Fiber& fiber = fibers[running.thread];
    fiber.state = state;
    --num_ready[turn.warp];
    switch_to_next(&fiber.stack_pointer);
}

void wait_as(State state, const char* name, Site site) {
    Fiber& fiber = fibers[running.thread];
    fiber.name = name;
    fiber.site = site;
    rest(state);
}

void run_thread() {
    launch->call(launch->args);
    rest(State::ENDED);
    __builtin_trap();
}

bool same(Site a, Site b) { return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0); }

// Write where a thread is, such as "thread 3 waits in shuffle at norm.cu:12".
void describe(char* text, int size, int thread) {
    const Fiber& fiber = fibers[thread];
    if (fiber.state == State::ENDED) {
        snprintf(text, size, "thread %d has ended", thread);
    } else {
        snprintf(text, size, "thread %d waits in %s at %s:%d", thread, fiber.name, base_name(fiber.site.file),
                 fiber.site.line);
    }
}

void report_two(const char* what, int thread, int other) {
    char first[200], second[200];
    describe(first, sizeof first, thread);
    describe(second, sizeof second, other);
    report("%s: %s, %s", what, first, second);
}

// Numbers 0 to count - 1 in the order that the launch asks for.
std::vector<int> in_order(int count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (launch->order == -2) {
        for (int i = 0; i < count / 2; ++i) std::swap(numbers[i], numbers[count - 1 - i]);
    } else if (launch->order >= 0) {
        for (int i = count - 1; i > 0; --i) std::swap(numbers[i], numbers[random_numbers.below(i + 1)]);
    }
    return numbers;
}

// Run each ready lane of a warp once. Return whether any of them can go on at once.
bool run_lanes(int warp) {
    turn = {warp, 0, 1, LANES};
    if (launch->order == -2) turn.lane = LANES - 1, turn.stride = LANES - 1;
    if (launch->order >= 0) {
        turn.lane = random_numbers.below(LANES);
        turn.stride = random_numbers.below(LANES / 2) * 2 + 1;
    }
    switch_to_next(&scheduler);
    return num_ready[warp] > 0;
}

// All lanes of the warp wait or have ended: report those that wait for lanes that will not come.
void check_parked(int warp) {
    if (meetings[warp].arrived == 0) return;
    int waiting = -1, missing = -1;
    for (int thread = warp * LANES; thread < (warp + 1) * LANES; ++thread) {
        (fibers[thread].state == State::IN_WARP ? waiting : missing) = thread;
    }
    report_two("missing lane", waiting, missing);
}

// Run the warps in turns until all their threads wait or have ended.
void run_to_rest() {
    std::vector<int> warps = in_order(running.num_threads / LANES);
    const bool take_turns = launch->order >= 0 && random_numbers.below(2);
    while (!warps.empty() && !failed) {
        const int index = take_turns ? random_numbers.below(warps.size()) : 0;
        if (num_ready[warps[index]] > 0 && run_lanes(warps[index])) continue;
        warps.erase(warps.begin() + index);
    }
}

// Let the threads go on that wait for the kernel before. Return false if there are none.
bool release_early() {
    bool found = false;
    for (int thread = 0; thread < running.num_threads; ++thread) {
        if (fibers[thread].state != State::EARLY) continue;
        fibers[thread].state = State::READY;
        ++num_ready[thread / LANES];
        found = true;
    }
    if (found) {
        block_waited = any_waited = true;
        memories.wait();
    }
    return found;
}

// Let the threads go on if all wait at the same barrier. Return false if all have ended.
bool release_barrier() {
    for (int thread = 1; thread < running.num_threads; ++thread) {
        const Fiber &a = fibers[0], &b = fibers[thread];
        if (a.state != b.state || (a.state == State::AT_BARRIER && !same(a.site, b.site))) {
            report_two("divergent barrier", 0, thread);
            return false;
        }
    }
    if (fibers[0].state == State::ENDED) return false;
    for (int thread = 0; thread < running.num_threads; ++thread) fibers[thread].state = State::READY;
    for (int warp = 0; warp < running.num_threads / LANES; ++warp) num_ready[warp] = LANES;
    return true;
}

void prepare_block() {
    memset(launch->shared_begin, SPOILED, launch->shared_end - launch->shared_begin);
    dynamic_shared.spoil();
    block_waited = false;
    if (launch->overlaps) memories.begin(true);
    for (int thread = 0; thread < running.num_threads; ++thread) {
        Fiber& fiber = fibers[thread];
        fiber.stack_pointer = stack_that_enters(stacks.top(thread), run_thread);
        fiber.state = State::READY;
        fiber.commits = 0;
        fiber.copies.clear();
        reset_products(thread);
        meetings[thread / LANES].arrived = 0;
        num_ready[thread / LANES] = LANES;
    }
}

void check_end() {
    for (int thread = 0; thread < running.num_threads && !failed; ++thread) {
        Site site = unfinished_product(thread);
        if (!fibers[thread].copies.empty()) site = fibers[thread].copies[0].site;
        if (!site.file) continue;
        report("thread %d did not wait for what it began at %s:%d", thread, base_name(site.file), site.line);
    }
    if (!dynamic_shared.is_intact()) report("a write beyond the dynamic shared memory");
}

void run_block() {
    prepare_block();
    do {
        run_to_rest();
        if (!failed && release_early()) continue;
        for (int warp = 0; warp < running.num_threads / LANES && !failed; ++warp) check_parked(warp);
        if (failed || !release_barrier()) break;
    } while (!failed);
    if (!failed) check_end();
}

void run_blocks() {
    const int width = launch->grid[0], height = launch->grid[1];
    for (const int block : in_order(width * height * launch->grid[2])) {
        if (failed) return;
        running.block[0] = block % width;
        running.block[1] = block / width % height;
        running.block[2] = block / width / height;
        run_block();
    }
    if (!failed && launch->overlaps && !any_waited)
        report("overlaps, but does not call wait_for_previous_kernel");
}

void report_fault(const FaultHandler& fault) {
    const int thread = stacks.overflowed(fault.address);
    if (fault.number == FaultHandler::TIMER) {
        report("thread %d still runs after %g s", running.thread, launch->limit_s);
    } else if (thread >= 0) {
        report("the stack of thread %d is full: a thread has %d KiB", thread, (int)(STACK_BYTES / 1024));
    } else if (fault.number == SIGILL || fault.number == SIGFPE) {
        report("thread %d stopped with signal %d at instruction 0x%llx", running.thread, fault.number,
               (unsigned long long)fault.instruction);
    } else {
        char place[200];
        if (!dynamic_shared.describe(place, sizeof place, fault.address)) {
            memories.describe(place, sizeof place, fault.address);
        }
        report("thread %d accessed 0x%llx%s, at instruction 0x%llx", running.thread,
               (unsigned long long)fault.address, place, (unsigned long long)fault.instruction);
    }
}

}  // namespace

void meet_block(Site site) { wait_as(State::AT_BARRIER, "block_barrier", site); }

void meet_previous_kernel(Site site) {
    if (launch->overlaps && !block_waited) wait_as(State::EARLY, "wait_for_previous_kernel", site);
}

void meet_warp(Combine combine, void* record, const char* name, Site site) {
    const int warp = running.thread / LANES;
    Meeting& meeting = meetings[warp];
    if (meeting.arrived == 0) {
        meeting.combine = combine;
        meeting.site = site;
    } else if (meeting.combine != combine || !same(meeting.site, site)) {
        fail(site, "%s, while other lanes wait at %s:%d", name, base_name(meeting.site.file),
             meeting.site.line);
    }
    meeting.records[running.thread % LANES] = record;
    if (++meeting.arrived < LANES) return wait_as(State::IN_WARP, name, site);
    combine(meeting.records);
    meeting.arrived = 0;
    for (int lane = 0; lane < LANES; ++lane) fibers[warp * LANES + lane].state = State::READY;
    num_ready[warp] = LANES;
}

void start_copy(void* to_shared, const void* from, Site site) {
    if (((std::uintptr_t)to_shared | (std::uintptr_t)from) % 16) {
        fail(site, "copy_16 from %p to %p, which are not both aligned to 16 bytes", from, to_shared);
    }
    if (!is_shared(to_shared, 16)) fail(site, "copy_16 to %p, which is not shared memory", to_shared);
    Fiber& fiber = fibers[running.thread];
    fiber.copies.push_back({to_shared, from, fiber.commits, site});
    (void)*(const volatile unsigned char*)from;
    memset(to_shared, SPOILED, 16);  // the copy may be done at any time from now on
}

void commit_copies() { ++fibers[running.thread].commits; }

void finish_copies(int pending) {
    Fiber& fiber = fibers[running.thread];
    std::size_t done = 0;
    for (; done < fiber.copies.size() && fiber.copies[done].group < fiber.commits - pending; ++done) {
        memcpy(fiber.copies[done].to, fiber.copies[done].from, 16);
    }
    if (done > 0) products[running.thread].published = false;
    fiber.copies.erase(fiber.copies.begin(), fiber.copies.begin() + done);
}

bool is_shared(const void* address, int bytes) {
    const unsigned char* at = (const unsigned char*)address;
    return (at >= launch->shared_begin && at + bytes <= launch->shared_end) ||
           dynamic_shared.contains(at, bytes);
}

void fail(Site site, const char* format, ...) {
    char text[400];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    report("%s:%d, thread %d: %s", base_name(site.file), site.line, running.thread, text);
    simt_switch(&fibers[running.thread].stack_pointer, scheduler);
    __builtin_trap();
}

const char* run(const Launch& asked) {
    launch = &asked;
    failed = any_waited = false;
    running.num_threads = asked.threads;
    memcpy(running.grid, asked.grid, sizeof running.grid);
    random_numbers = Random(asked.order < 0 ? 0 : asked.order);
    running.dynamic_shared = dynamic_shared.resize(asked.shared_bytes);
    if (!running.dynamic_shared) return "no memory for the dynamic shared memory";
    FaultHandler fault(asked.limit_s, [](std::uintptr_t address) { return memories.note_access(address); });
    memories.begin(asked.overlaps);
    if (sigsetjmp(fault.target, 1) == 0) {
        run_blocks();
    } else {
        report_fault(fault);
    }
    memories.end();
    const std::size_t damaged = memories.damaged();
    if (damaged)
        report("or an earlier one: a write beside a memory of %llu bytes", (unsigned long long)damaged);
    return failed ? error : nullptr;
}

void track_writes() { memories.track(); }
void forget_writes() { memories.forget_writes(); }
void allow_host(void* pointer) { memories.allow_host((unsigned char*)pointer); }
void* allocate(std::size_t bytes) { return memories.allocate(bytes); }
void release(void* pointer) { memories.release((unsigned char*)pointer); }

}  // namespace simt

extern "C" void* simt_allocate(std::size_t bytes) { return simt::allocate(bytes); }
extern "C" void simt_track_writes() { simt::track_writes(); }
extern "C" void simt_forget_writes() { simt::forget_writes(); }
extern "C" void simt_allow_host(void* pointer) { simt::allow_host(pointer); }
extern "C" void simt_release(void* pointer) { simt::release(pointer); }
