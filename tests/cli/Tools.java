import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.consumer.group.ShareGroupCommand;

/** Runs kafka-share-groups for each line of stdin, without starting anew each time. */
public class Tools {
    static class Ended extends RuntimeException {
        final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream stdout = System.out;
        Exit.Procedure end = (code, message) -> {
            throw new Ended(code);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = lines.readLine()) != null) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream everything = new PrintStream(said, true);
            System.setOut(everything);
            System.setErr(everything);
            int code = 0;
            try {
                ShareGroupCommand.main(line.split("\t"));
            } catch (Ended ended) {
                code = ended.code;
            } catch (Throwable error) {
                everything.println(error);
                code = 1;
            }
            everything.flush();
            stdout.println("code " + code + " bytes " + said.size());
            stdout.write(said.toByteArray());
            stdout.flush();
        }
    }
}
