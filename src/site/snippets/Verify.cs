using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

public static class Webhooks
{
    // Throws unless the event is ours. header: the value of a header by its name, whatever its case, as
    // `name => Request.Headers[name]` of ASP.NET. body: the raw bytes of the request.
    public static void Verify(string secret, Func<string, string> header, byte[] body)
    {
        var key = Convert.FromBase64String(Regex.Replace(secret, "^whsec_", ""));
        // Anybody can sign with an empty key.
        if (key.Length == 0) throw new CryptographicException("there is no secret");

        var id = header("webhook-id");
        var timestamp = header("webhook-timestamp") ?? "";
        var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (!Regex.IsMatch(timestamp, @"\A[0-9]{1,12}\z") || Math.Abs(now - long.Parse(timestamp)) > 300)
        {
            throw new CryptographicException("too old or too new");
        }

        var signed = Encoding.UTF8.GetBytes($"{id}.{timestamp}.").Concat(body).ToArray();
        using (var mac = new HMACSHA256(key))
        {
            var expected = Encoding.ASCII.GetBytes(Convert.ToBase64String(mac.ComputeHash(signed)));
            // ASP.NET joins several lines of one header with commas.
            var entries = (header("webhook-signature") ?? "").Split(' ', ',').Where(entry => entry != "").ToArray();
            for (var at = 1; at < entries.Length; at++)
            {
                var given = Encoding.UTF8.GetBytes(entries[at]);
                if (entries[at - 1] == "v1" && CryptographicOperations.FixedTimeEquals(given, expected)) return;
            }
        }
        throw new CryptographicException("no signature matches");
    }
}
