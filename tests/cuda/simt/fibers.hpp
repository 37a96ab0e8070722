// Threads of a block as fibers: stacks of their own, and a switch between them that saves registers.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace simt {

constexpr int MOST_THREADS = 1024;
constexpr std::size_t PAGE = 4096;
constexpr std::size_t STACK_BYTES = 64 * 1024;  // without the guard page below

// Save the registers that a function must keep, store the stack pointer, and go on with those of another
// stack.
extern "C" void simt_switch(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size simt_switch, . - simt_switch
)");
// Return the stack pointer from which simt_switch enters `function`: six registers, the address, and a place
// for the address to which the function would return, 8 bytes below a multiple of 16 as after a call.
inline void* stack_that_enters(unsigned char* top, void (*function)()) {
    void** slots = (void**)top;
    slots[-1] = nullptr;
    slots[-2] = (void*)function;
    for (int saved = 3; saved <= 8; ++saved) slots[-saved] = nullptr;
    return slots - 8;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch, %function
simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size simt_switch, . - simt_switch
)");
inline void* stack_that_enters(unsigned char* top, void (*function)()) {
    void** slots = (void**)(top - 160);
    for (int saved = 0; saved < 20; ++saved) slots[saved] = nullptr;
    slots[11] = (void*)function;  // x30, where the switch returns
    return slots;
}
#else
#error "no switch of stacks for this processor"
#endif

// Stacks of all threads of a block, each with a guard page below. They are mapped once.
class Stacks {
  public:
    unsigned char* top(int thread) {
        if (!begin) map();
        // At different places of their pages, so that a cache has room for those of a warp.
        return begin + (thread + 1) * STRIDE - thread % 64 * 192;
    }

    // Return the thread whose guard page has the address, or -1.
    int overflowed(std::uintptr_t address) const {
        const std::uintptr_t offset = address - (std::uintptr_t)begin;
        if (!begin || offset >= MOST_THREADS * STRIDE) return -1;
        return offset % STRIDE < PAGE ? (int)(offset / STRIDE) : -1;
    }

  private:
    static constexpr std::size_t STRIDE = STACK_BYTES + PAGE;

    void map() {
        void* all = mmap(nullptr, MOST_THREADS * STRIDE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) abort();
        begin = (unsigned char*)all;
        for (int thread = 0; thread < MOST_THREADS; ++thread)
            mprotect(begin + thread * STRIDE, PAGE, PROT_NONE);
    }

    unsigned char* begin = nullptr;
};

}  // namespace simt
