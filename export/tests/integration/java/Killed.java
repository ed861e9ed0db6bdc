import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What computes until its flight recorder has written to its file a few times, and is killed then. */
public class Killed {
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
        try (RandomAccessFile of = new RandomAccessFile(file.toFile(), "r")) {
            of.seek(64);
            return of.read();
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<Path> files;
        do {
            compute();
            try (Stream<Path> all = Files.walk(Path.of(arguments[0]))) {
                files = all.filter(path -> path.toString().endsWith(".jfr")).toList();
            }
        } while (files.isEmpty() || written(files.get(0)) < 4);
        String pid = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("kill", "-9", pid).start().waitFor();
    }
}
