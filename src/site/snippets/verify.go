package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Verify takes the headers of net/http, with names in their canonical form, and the raw body of the request. It returns nil
// when the event is ours.
func Verify(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	// Anybody can sign with an empty key.
	if len(key) == 0 {
		return errors.New("there is no secret")
	}
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("too old or too new")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// A proxy may have made several lines of the signatures, or joined lines with a comma.
	entries := strings.FieldsFunc(strings.Join(header.Values("webhook-signature"), " "), func(letter rune) bool {
		return letter == ' ' || letter == ','
	})
	for at := 1; at < len(entries); at++ {
		if entries[at-1] == "v1" && hmac.Equal([]byte(entries[at]), []byte(expected)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}
