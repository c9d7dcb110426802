<?php

// Returns the event, or throws. $headers: $_SERVER, which has them under php-fpm and CGI too, or what a framework has.
// $body: the raw body. As in: $event = verify($secret, $_SERVER, file_get_contents('php://input'));
function verify(string $secret, array $headers, string $body): array
{
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    // Anybody can sign with an empty key.
    if ($key === false || $key === '') {
        throw new RuntimeException('there is no secret');
    }

    // One form of each name: `Webhook-Id`, `webhook-id` and `HTTP_WEBHOOK_ID` are the same. A value may be a list.
    $found = [];
    foreach ($headers as $name => $value) {
        $value = is_array($value) ? implode(' ', array_filter($value, 'is_string')) : $value;
        if (is_string($value)) {
            $found[strtr(strtolower((string) $name), '_', '-')] = $value;
        }
    }
    // In $_SERVER a variable WEBHOOK_ID is the process's and no header.
    $header = fn (string $name): string => $found["http-$name"] ?? $found[$name] ?? '';
    $id = $header('webhook-id');
    $timestamp = $header('webhook-timestamp');
    if (!preg_match('/^\d{1,12}$/D', $timestamp) || abs(time() - (int) $timestamp) > 300) {
        throw new RuntimeException('too old or too new');
    }

    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));

    preg_match_all('/v1,[A-Za-z0-9+\/]+=*/', $header('webhook-signature'), $given);
    foreach ($given[0] as $entry) {
        if (hash_equals($expected, $entry)) {
            return json_decode($body, true, 512, JSON_THROW_ON_ERROR | JSON_BIGINT_AS_STRING);
        }
    }
    throw new RuntimeException('no signature matches');
}
