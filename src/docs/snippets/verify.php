<?php

// $body: the raw body, from file_get_contents('php://input'). Returns the event, or throws.
function verify(string $secret, array $headers, string $body): array
{
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    // Anybody can sign with an empty key.
    if ($key === false || $key === '') {
        throw new RuntimeException('there is no secret');
    }

    $id = $headers['webhook-id'];
    $timestamp = $headers['webhook-timestamp'];
    if (abs(time() - (int) $timestamp) > 300) {
        throw new RuntimeException('too old or too new');
    }

    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));

    foreach (explode(' ', $headers['webhook-signature']) as $entry) {
        if (hash_equals($expected, $entry)) {
            return json_decode($body, true, 512, JSON_THROW_ON_ERROR | JSON_BIGINT_AS_STRING);
        }
    }
    throw new RuntimeException('no signature matches');
}
