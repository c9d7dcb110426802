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
     * of a servlet. body: the raw bytes of the request.
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
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));

        for (String entry : signatures.split(" ")) {
            if (MessageDigest.isEqual(entry.getBytes(StandardCharsets.UTF_8), expected.getBytes(StandardCharsets.UTF_8))) return;
        }
        throw new GeneralSecurityException("no signature matches");
    }
}
