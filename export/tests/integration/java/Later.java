import java.lang.management.ManagementFactory;
import java.util.concurrent.locks.LockSupport;

/** What threads do, virtual ones where there are such: they compute, and park. */
public class Later {
    static volatile double sum;

    static void compute() {
        double result = 0;
        for (int at = 1; at < 20_000_000; at++) {
            result += Math.sqrt(at) / at;
        }
        sum += result;
    }

    static void park() {
        for (int at = 0; at < 3; at++) {
            LockSupport.parkNanos(25_000_000);
        }
    }

    static void work() {
        compute();
        park();
    }

    /** By reflection, as the compiler of JDK 17 knows none. */
    static Thread virtual(String name) throws Exception {
        Class<?> kind = Class.forName("java.lang.Thread$Builder");
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        builder = kind.getMethod("name", String.class).invoke(builder, name);
        return (Thread) kind.getMethod("start", Runnable.class).invoke(builder, (Runnable) Later::work);
    }

    public static void main(String[] arguments) throws Exception {
        Thread platform = new Thread(Later::work, "platform");
        platform.start();
        platform.join();
        if (Runtime.version().feature() >= 21) {
            Thread[] threads = {virtual("virtual 1"), virtual("virtual 2"), virtual("")};
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }
}
