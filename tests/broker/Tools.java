import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the tools that stdin names, one after the other, without starting anew each time.
 *
 * A request is a list of byte strings: the class, the arguments, and the tool's stdin. A
 * response is the exit code, stdout and stderr.
 */
public class Tools {
    private static final String PACKAGE = "org.apache.kafka.tools.";

    /** The end of a tool's main thread. No tool catches errors of this kind on its way. */
    static class Ended extends Error {}

    /** A tool: what it has printed, and its exit code. */
    static class Tool {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        Integer code;
    }

    /** Threads that a tool leaves behind print to their own tool, not to the next one. */
    private static final InheritableThreadLocal<Tool> TOOL = new InheritableThreadLocal<>();

    /** Passes what a thread prints to its tool. */
    static class Output extends OutputStream {
        private final boolean isError;

        Output(boolean isError) {
            this.isError = isError;
        }

        @Override
        public void write(int octet) {
            write(new byte[] {(byte) octet}, 0, 1);
        }

        @Override
        public void write(byte[] octets, int start, int count) {
            Tool tool = TOOL.get();
            if (tool != null) {
                (isError ? tool.err : tool.out).write(octets, start, count);
            }
        }
    }

    /** Loads each tool anew, since tools count in static fields; and clients only once. */
    static class ToolLoader extends URLClassLoader {
        ToolLoader(URL[] jars) {
            super(jars, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> found = findLoadedClass(name);
                if (found == null && name.startsWith(PACKAGE)) {
                    found = findClass(name);
                }
                return found != null ? found : super.loadClass(name, resolve);
            }
        }
    }

    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream responses = new DataOutputStream(System.out);
        System.setOut(new PrintStream(new Output(false), true));
        System.setErr(new PrintStream(new Output(true), true));
        Exit.Procedure end = (code, message) -> {
            Tool tool = TOOL.get();
            if (tool.code == null) {
                tool.code = code;
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> TOOL.get().hooks.add(hook));
        while (true) {
            List<byte[]> request;
            try {
                request = read(requests);
            } catch (EOFException ended) {
                System.exit(0);
                return;
            }
            Tool tool = new Tool();
            Thread thread = new Thread(() -> run(tool, request));
            thread.start();
            thread.join();
            responses.writeInt(tool.code);
            write(responses, tool.out.toByteArray());
            write(responses, tool.err.toByteArray());
            responses.flush();
        }
    }

    private static void run(Tool tool, List<byte[]> request) {
        TOOL.set(tool);
        int last = request.size() - 1;
        System.setIn(new ByteArrayInputStream(request.get(last)));
        String[] args = new String[last - 1];
        for (int i = 1; i < last; i++) {
            args[i - 1] = new String(request.get(i));
        }
        // Hooks close clients, whose last callbacks can be the first to need a class.
        try (ToolLoader loader = new ToolLoader(jars())) {
            attempt(tool, () -> start(loader, new String(request.get(0)), args));
            for (Runnable hook : tool.hooks) {
                attempt(tool, hook);
            }
        } catch (IOException error) {
            error.printStackTrace();
        }
        if (tool.code == null) {
            tool.code = 0;
        }
    }

    private static void attempt(Tool tool, Runnable part) {
        try {
            part.run();
        } catch (Ended ended) {
            return;
        } catch (Throwable error) {
            error.printStackTrace();
            if (tool.code == null) {
                tool.code = 1;
            }
        }
    }

    private static void start(ToolLoader loader, String name, String[] args) {
        try {
            Class<?> tool = loader.loadClass(name);
            tool.getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Ended) {
                throw (Ended) error.getCause();
            }
            throw new IllegalStateException(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static URL[] jars() throws IOException {
        List<URL> found = new ArrayList<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            found.add(new File(path).toURI().toURL());
        }
        return found.toArray(new URL[0]);
    }

    private static List<byte[]> read(DataInputStream stream) throws IOException {
        List<byte[]> parts = new ArrayList<>();
        for (int left = stream.readInt(); left > 0; left--) {
            parts.add(stream.readNBytes(stream.readInt()));
        }
        return parts;
    }

    private static void write(DataOutputStream stream, byte[] octets) throws IOException {
        stream.writeInt(octets.length);
        stream.write(octets);
    }
}
