import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What computes until its flight recorder has written what it saw of two seconds on a CPU to its file, and is killed then. */
public class Killed {
    /** In place of a count: what is behind it changes just now. */
    static final int BEING_WRITTEN = 0xff;

    static volatile double sum;

    static void compute() {
        double result = 0;
        for (int at = 1; at < 2_000_000; at++) {
            result += Math.sqrt(at) / at;
        }
        sum += result;
    }

    /** How often a file was written to up to now. */
    static int written(Path file) throws Exception {
        int count;
        try (RandomAccessFile of = new RandomAccessFile(file.toFile(), "r")) {
            do {
                of.seek(64);
                count = of.read();
            } while (count == BEING_WRITTEN);
        }
        return count;
    }

    public static void main(String[] arguments) throws Exception {
        List<Path> files;
        do {
            compute();
            try (Stream<Path> all = Files.walk(Path.of(arguments[0]))) {
                files = all.filter(path -> path.toString().endsWith(".jfr")).toList();
            }
        } while (files.isEmpty() || ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < 2_000_000_000L);
        int before = written(files.get(0));
        while (written(files.get(0)) < before + 2) {
            compute();
        }
        String pid = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("kill", "-9", pid).start().waitFor();
    }
}
