// Loads a BPF program of two instructions and lets it go, as often as it is told to.

#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insn_cnt = sizeof program / sizeof program[0];
    attr.insns = (unsigned long)program;
    attr.license = (unsigned long)"GPL";
    strcpy(attr.prog_name, "loaf");
    for (int left = count > 1 ? atoi(words[1]) : 1; left > 0; left--) {
        int loaded = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
        if (loaded < 0) {
            perror("BPF_PROG_LOAD");
            return 1;
        }
        close(loaded);
    }
    return 0;
}
