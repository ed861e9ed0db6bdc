import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import jdk.jfr.FlightRecorder;
import java.util.concurrent.locks.LockSupport;

/** What a flight recorder has events of: code that computes, allocates, waits for monitors, and parks. */
public class Recorded {
    static volatile Object kept;
    static volatile double sum;
    static final Object LOCK = new Object();

    static double compute(int depth) {
        if (depth > 0) {
            return compute(depth - 1);
        }
        double result = 0;
        for (int at = 1; at < 2_000_000; at++) {
            result += Math.sqrt(at) / at;
        }
        return result;
    }

    static void allocate() {
        for (int at = 0; at < 2_000; at++) {
            kept = new byte[at * 10];
        }
    }

    static void hold() throws InterruptedException {
        synchronized (LOCK) {
            Thread.sleep(25);
        }
    }

    static void locking() {
        try {
            for (int at = 0; at < 15; at++) {
                hold();
                LockSupport.parkNanos(25_000_000);
            }
        } catch (InterruptedException error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] threads = {new Thread(Recorded::locking, "waits ä"), new Thread(Recorded::locking, "waits 2")};
        for (Thread thread : threads) {
            thread.start();
        }
        // As much work on a busy machine as on another.
        ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
        for (int at = 0; at < 30 || cpu.getCurrentThreadCpuTime() < 800_000_000L; at++) {
            sum += compute(3);
            sum += compute(100);
            allocate();
        }
        // The recorder ends a chunk of its file for it.
        FlightRecorder.getFlightRecorder().takeSnapshot().close();
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
