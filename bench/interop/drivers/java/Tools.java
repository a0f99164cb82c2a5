import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main method of a command line tool as its script would, with arguments and standard input, and gives back
 * what it printed and its exit code. Exits are trapped; each run loads the tool's own classes anew, because some count
 * in static fields (ConsoleConsumer its messages), while Kafka's libraries stay loaded and compiled.
 */
final class Tools {
    record Result(int exit, String out, String err) {}

    /** Thrown in place of the end of the JVM. An Error, so that a tool's "catch (Exception)" lets it pass. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;
        final int code;

        Exited(int code, String message) {
            super(message, null, false, false);
            this.code = code;
        }
    }

    private final URL[] jars;

    Tools() {
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        // A tool's shutdown hook is for the end of its process, which does not come here.
        Exit.setShutdownHookAdder((name, hook) -> {});
        List<URL> found = new ArrayList<>();
        try {
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                if (new File(entry).getName().startsWith("kafka-tools-4")) {
                    found.add(new File(entry).toURI().toURL());
                }
            }
        } catch (java.net.MalformedURLException e) {
            throw new IllegalStateException(e);
        }
        jars = found.toArray(URL[]::new);
    }

    private static void exit(int code, String message) {
        throw new Exited(code, message);
    }

    Result run(String main, List<String> args, String stdin, long waitMs) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        InputStream realIn = System.in;
        AtomicReference<Throwable> end = new AtomicReference<>();
        try (FreshTools loader = new FreshTools(jars)) {
            PrintStream toolOut = new PrintStream(out, true, StandardCharsets.UTF_8);
            PrintStream toolErr = new PrintStream(err, true, StandardCharsets.UTF_8);
            Thread thread = new Thread(() -> {
                try {
                    Class.forName(main, true, loader).getMethod("main", String[].class).invoke(null, (Object) args.toArray(String[]::new));
                } catch (InvocationTargetException e) {
                    end.set(e.getCause());
                } catch (Throwable e) {
                    end.set(e);
                }
            }, "tool-" + main);
            thread.setContextClassLoader(loader);
            thread.setDaemon(true);
            System.setOut(toolOut);
            System.setErr(toolErr);
            System.setIn(new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)));
            thread.start();
            thread.join(waitMs);
            if (thread.isAlive()) {
                thread.interrupt();
                thread.join(5_000);
                throw new TimeoutException(main + " " + args + " did not end in " + waitMs + " ms; it printed:\n"
                    + out.toString(StandardCharsets.UTF_8) + err.toString(StandardCharsets.UTF_8));
            }
            toolOut.flush();
            toolErr.flush();
        } finally {
            System.setOut(realOut);
            System.setErr(realErr);
            System.setIn(realIn);
        }
        int code = 0;
        Throwable thrown = end.get();
        if (thrown instanceof Exited e) {
            code = e.code;
        } else if (thrown != null) { // what the JVM does with an exception that leaves main
            code = 1;
            thrown.printStackTrace(new PrintStream(err, true, StandardCharsets.UTF_8));
        }
        return new Result(code, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
    }

    /** Loads the tools' packages by itself and leaves everything else to the application's loader. */
    private static final class FreshTools extends URLClassLoader {
        FreshTools(URL[] jars) {
            super(jars, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> c = findLoadedClass(name);
                if (c == null) {
                    try {
                        c = findClass(name);
                    } catch (ClassNotFoundException e) { // in another jar than the tools' own, as kafka-tools-api
                        return super.loadClass(name, resolve);
                    }
                }
                if (resolve) {
                    resolveClass(c);
                }
                return c;
            }
        }
    }
}
