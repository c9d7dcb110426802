/** The back office's tables, in the words of the schema they are part of. */
export function backOfficeSchema(table: string): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS applications (
    sequence BIGINT NOT NULL PRIMARY KEY,
    client_application_id VARCHAR(64) NOT NULL,
    reference VARCHAR(32) NOT NULL,
    course TINYINT NOT NULL,
    decide_after_ms INT NOT NULL,
    magic_name VARCHAR(64) NOT NULL,
    state TINYINT NOT NULL,
    account VARCHAR(64) NOT NULL,
    reject_reason TINYINT NOT NULL,
    param VARCHAR(64) NOT NULL,
    decide_at_ms BIGINT NULL,
    UNIQUE KEY by_client_application_id (client_application_id),
    KEY by_decision (decide_at_ms)
  ) ${table}`,
    `CREATE TABLE IF NOT EXISTS application_reports (
    number BIGINT NOT NULL PRIMARY KEY,
    client_application_id VARCHAR(64) NOT NULL,
    kind TINYINT NOT NULL,
    at_ms BIGINT NOT NULL,
    reference VARCHAR(32) NOT NULL,
    account VARCHAR(64) NOT NULL,
    reject_reason TINYINT NOT NULL,
    param VARCHAR(64) NOT NULL,
    KEY by_application (client_application_id, number)
  ) ${table}`,
    // Files are people's papers: of each only its digest is kept, so that a test can tell how often it came.
    `CREATE TABLE IF NOT EXISTS documents (
    client_application_id VARCHAR(64) NOT NULL,
    type TINYINT NOT NULL,
    sha256 CHAR(64) NOT NULL,
    size_bytes INT NOT NULL,
    times_received INT NOT NULL,
    delivered TINYINT NOT NULL,
    first_received BIGINT NOT NULL,
    PRIMARY KEY (client_application_id, type, sha256)
  ) ${table}`,
    `CREATE TABLE IF NOT EXISTS allocations (
    sequence BIGINT NOT NULL PRIMARY KEY,
    client_allocation_id VARCHAR(64) NOT NULL,
    account VARCHAR(64) NOT NULL,
    amount_kobo BIGINT NOT NULL,
    outcome TINYINT NOT NULL,
    broker_reference VARCHAR(32) NOT NULL,
    reject_reason TINYINT NOT NULL,
    at_ms BIGINT NOT NULL,
    UNIQUE KEY by_client_allocation_id (client_allocation_id)
  ) ${table}`,
    `CREATE TABLE IF NOT EXISTS cash (
    account VARCHAR(64) NOT NULL PRIMARY KEY,
    balance_kobo BIGINT NOT NULL
  ) ${table}`,
    `CREATE TABLE IF NOT EXISTS cash_entries (
    number BIGINT NOT NULL PRIMARY KEY,
    account VARCHAR(64) NOT NULL,
    amount_kobo BIGINT NOT NULL,
    balance_kobo BIGINT NOT NULL,
    client_allocation_id VARCHAR(64) NOT NULL,
    at_ms BIGINT NOT NULL,
    KEY by_account (account, number)
  ) ${table}`,
  ];
}
