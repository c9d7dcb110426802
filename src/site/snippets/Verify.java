import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Verify {
    /**
     * Throws unless the event is ours. header: the value of a header by its name, whatever its case, as `request::getHeader`
     * of a servlet; where a proxy may send several lines of one header, all of them, joined with spaces or commas. body: the raw
     * bytes of the request.
     */
    public static void verify(String secret, UnaryOperator<String> header, byte[] body) throws GeneralSecurityException {
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
        // Anybody can sign with an empty key.
        if (key.length == 0) throw new GeneralSecurityException("there is no secret");

        String id = header.apply("webhook-id");
        String timestamp = header.apply("webhook-timestamp");
        String signatures = header.apply("webhook-signature");
        if (id == null || signatures == null || timestamp == null || !timestamp.matches("[0-9]{1,12}")
                || Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) {
            throw new GeneralSecurityException("too old or too new");
        }

        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        byte[] expected = Base64.getEncoder().encode(mac.doFinal(body));

        String[] entries = signatures.split("[ ,]+");
        for (int at = 1; at < entries.length; at++) {
            byte[] given = entries[at].getBytes(StandardCharsets.UTF_8);
            if (entries[at - 1].equals("v1") && MessageDigest.isEqual(given, expected)) return;
        }
        throw new GeneralSecurityException("no signature matches");
    }
}
