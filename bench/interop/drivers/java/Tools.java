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
import java.util.concurrent.CopyOnWriteArrayList;
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

        Exited(int code, String message) {
            super("exit " + code + ": " + message, null, false, false);
        }
    }

    private final URL[] jars;

    Tools() {
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> RUNNING.get().hooks.add(new Thread(hook, name)));
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

    /** What the running tool has printed so far, what it wants done at the end of its process, and how it ended. */
    private static final class Run {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Thread> hooks = new CopyOnWriteArrayList<>();
        Result ended;

        /** Does what the JVM does at its end: starts the hooks, waits for them, and then nothing is printed any more. */
        synchronized void end(int code) {
            if (ended != null) { // the first exit is the one that would have ended the JVM
                return;
            }
            hooks.forEach(Thread::start);
            try {
                for (Thread hook : hooks) {
                    hook.join(10_000);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            System.out.flush();
            System.err.flush();
            ended = new Result(code, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
        }
    }

    private static final AtomicReference<Run> RUNNING = new AtomicReference<>();

    private static void exit(int code, String message) {
        RUNNING.get().end(code);
        throw new Exited(code, message);
    }

    Result run(String main, List<String> args, String stdin, long waitMs) throws Exception {
        Run run = new Run();
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        InputStream realIn = System.in;
        try (FreshTools loader = new FreshTools(jars)) {
            PrintStream toolOut = new PrintStream(run.out, true, StandardCharsets.UTF_8);
            PrintStream toolErr = new PrintStream(run.err, true, StandardCharsets.UTF_8);
            Thread thread = new Thread(() -> main(main, args, loader, run), "tool-" + main);
            thread.setContextClassLoader(loader);
            thread.setDaemon(true);
            RUNNING.set(run);
            System.setOut(toolOut);
            System.setErr(toolErr);
            System.setIn(new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)));
            thread.start();
            thread.join(waitMs);
            if (thread.isAlive()) {
                thread.interrupt();
                thread.join(5_000);
                throw new TimeoutException(main + " " + args + " did not end in " + waitMs + " ms; it printed:\n"
                    + run.out.toString(StandardCharsets.UTF_8) + run.err.toString(StandardCharsets.UTF_8));
            }
        } finally {
            System.setOut(realOut);
            System.setErr(realErr);
            System.setIn(realIn);
        }
        return run.ended;
    }

    /** The tool's main thread: however main is left, the run has ended after it. */
    private static void main(String main, List<String> args, ClassLoader loader, Run run) {
        int code = 0;
        try {
            Class.forName(main, true, loader).getMethod("main", String[].class).invoke(null, (Object) args.toArray(String[]::new));
        } catch (InvocationTargetException e) { // what the JVM does with an exception that leaves main
            code = 1;
            if (!(e.getCause() instanceof Exited)) {
                e.getCause().printStackTrace();
            }
        } catch (ReflectiveOperationException e) {
            code = 1;
            e.printStackTrace();
        }
        run.end(code);
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
