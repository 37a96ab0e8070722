// Turns a fault of a kernel (an access outside memory, a trap, a loop without end) into an error of its
// launch.
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>

namespace simt {

// While one exists, a fault of this thread jumps to `target`, which sigsetjmp has set.
class FaultHandler {
  public:
    static inline const int TIMER = SIGRTMAX - 3;  // the signal when the time is over

    // `limit_s` is how much time of the processor the thread has. `repair` may make an access possible: then
    // it is tried again.
    FaultHandler(double limit_s, bool (*repair)(std::uintptr_t address)) : repair(repair) {
        active = this;
        thread = pthread_self();
        stack_t stack = {};
        stack.ss_sp = alternate;
        stack.ss_size = sizeof alternate;
        sigaltstack(&stack, &old_stack);
        struct sigaction action = {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int i = 0; i < NUM_SIGNALS; ++i) sigaction(SIGNALS[i], &action, &old_actions[i]);
        sigaction(TIMER, &action, &old_timer_action);
        start_timer(limit_s);
    }
    ~FaultHandler() {
        timer_delete(timer);
        sigaction(TIMER, &old_timer_action, nullptr);
        for (int i = 0; i < NUM_SIGNALS; ++i) sigaction(SIGNALS[i], &old_actions[i], nullptr);
        sigaltstack(&old_stack, nullptr);
        active = nullptr;
    }
    FaultHandler(const FaultHandler&) = delete;

    sigjmp_buf target;
    std::uintptr_t address = 0;      // that was accessed
    std::uintptr_t instruction = 0;  // that did it
    int number = 0;                  // of the signal

  private:
    static constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    static constexpr int NUM_SIGNALS = 4;

    void start_timer(double limit_s) {
        struct sigevent event = {};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = TIMER;
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer);
        struct itimerspec limit = {};
        limit.it_value.tv_sec = (time_t)limit_s;
        limit.it_value.tv_nsec = (long)((limit_s - (double)limit.it_value.tv_sec) * 1e9);
        timer_settime(timer, 0, &limit, nullptr);
    }

    static void handle(int number, siginfo_t* info, void* context) {
        FaultHandler* handler = active;
        if (!handler || !pthread_equal(handler->thread, pthread_self())) {
            signal(number, SIG_DFL);  // not ours: the same instruction faults again, and ends the process
            return;
        }
        if (number == SIGSEGV && handler->repair((std::uintptr_t)info->si_addr)) return;
        handler->number = number;
        handler->address = (std::uintptr_t)info->si_addr;
        handler->instruction = instruction_of((const ucontext_t*)context);
        siglongjmp(handler->target, 1);
    }

    static std::uintptr_t instruction_of(const ucontext_t* context) {
#if defined(__x86_64__)
        return context->uc_mcontext.gregs[REG_RIP];
#else
        return context->uc_mcontext.pc;
#endif
    }

    static inline FaultHandler* active = nullptr;
    static inline unsigned char alternate[64 * 1024];
    bool (*repair)(std::uintptr_t address);
    pthread_t thread;
    timer_t timer;
    stack_t old_stack;
    struct sigaction old_timer_action;
    struct sigaction old_actions[NUM_SIGNALS];
};

}  // namespace simt
