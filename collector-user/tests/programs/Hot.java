import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Burns CPU time in a method that the virtual machine compiles: so many seconds of it. */
public class Hot {
    static int burnHot(int rounds) {
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            sum = sum * 31 + round;
            sum ^= sum >>> 3;
        }
        return sum;
    }

    public static void main(String[] arguments) {
        int total = 0;
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long end = Long.parseLong(arguments[0]) * 1_000_000_000L;
        while (threads.getCurrentThreadCpuTime() < end) {
            total += burnHot(100_000);
        }
        System.out.println(total);
    }
}
