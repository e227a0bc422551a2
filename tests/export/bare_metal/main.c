/* Run a model on a processor without an operating system, and compare with expected probabilities.
   cases.h, which the test writes, has the patches and what torch gives. */
#include <stdint.h>
#include <string.h>

#include "cases.h"

extern uint32_t _stack, _data, _data_end, _data_source, _bss, _bss_end;
int main(void);

static int call(int operation, const void *argument) { /* semihosting: the emulator does it */
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void reset(void) {
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit */
    __asm__ volatile("dsb; isb");
    memcpy(&_data, &_data_source, (size_t)((char *)&_data_end - (char *)&_data));
    memset(&_bss, 0, (size_t)((char *)&_bss_end - (char *)&_bss));
    main();
    call(0x18, (const void *)0x20026); /* the program ended */
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {&_stack, (const void *)reset};

static MODEL(patch) patch;
static float found[MODEL(classes)], workspace[MODEL(workspace)];

int main(void) {
    float largest = 0.0f;
    for (int at = 0; at < CASES; at++) {
        memcpy(&patch, patches[at], sizeof patch);
        MODEL(run)(&patch, found, workspace);
        for (int i = 0; i < MODEL(classes); i++) {
            float gap = found[i] - expected[at][i];
            gap = gap < 0 ? -gap : gap;
            largest = gap > largest || gap != gap ? gap : largest;
        }
    }
    call(0x04, largest < 1e-5f ? "same\n" : "other\n");
    return 0;
}
