import type { MessageInitShape } from '@bufbuild/protobuf';
import type { RowDataPacket } from 'mysql2/promise';
import type { DocumentType } from '../../gen/marina/broker/v1/applications_pb.ts';
import {
  Call,
  type ListAccountsResponseSchema,
  type ListAllocationsResponseSchema,
  type ListApplicationsResponseSchema,
} from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { Database } from '../database.ts';
import type { ApplicationEvent } from './model.ts';
import {
  type AllocationRow,
  type ApplicationReportRow,
  type ApplicationRow,
  allocationColumns,
  allocationFromRow,
  allocationRecordMessage,
  applicationColumns,
  applicationReportColumns,
  applicationReportFromRow,
  type DocumentRow,
  documentColumns,
} from './rows.ts';

/** How many records a page holds. */
const maxPage = 1_000;
/** More than an application has reports. */
const maxReports = 100;

/** What the back office's record says, read from its tables. */
export class BackOfficeRecords {
  constructor(private readonly database: Database) {}

  /** Whether the broker has an application, and its reports above a number. */
  async reportsOf(id: string, afterNumber: number) {
    const found = await this.database.read('SELECT 1 FROM applications WHERE client_application_id = ?', [id]);
    const rows = await this.database.read<ApplicationReportRow>(
      `SELECT ${applicationReportColumns} FROM application_reports
       WHERE client_application_id = ? AND number > ? ORDER BY number LIMIT ?`,
      [id, afterNumber, maxReports],
    );
    return { found: found.length > 0, reports: rows.map(applicationReportFromRow) };
  }

  /** Reports above a number, and not above the last that readers may see. */
  async reportsAfter(number: number, last: number, limit: number): Promise<ApplicationEvent[]> {
    const rows = await this.database.read<ApplicationReportRow>(
      `SELECT ${applicationReportColumns} FROM application_reports
       WHERE number > ? AND number <= ? ORDER BY number LIMIT ?`,
      [number, last, limit],
    );
    return rows.map(applicationReportFromRow);
  }

  /** The magic first name of an application, if it has one, and how often a document of a type came. */
  async documentMagic(id: string, type: DocumentType): Promise<{ magicName: string; timesReceived: number }> {
    const [row] = await this.database.read<RowDataPacket & { magic_name: string; received: number }>(
      `SELECT magic_name, EXISTS (
         SELECT 1 FROM documents d WHERE d.client_application_id = a.client_application_id AND d.type = ?
       ) AS received
       FROM applications a WHERE client_application_id = ?`,
      [type, id],
    );
    return { magicName: row?.magic_name ?? '', timesReceived: row?.received ?? 0 };
  }

  /** Whether the broker has a document of a type; undefined when it does not have the application. */
  async hasDocument(id: string, type: DocumentType): Promise<boolean | undefined> {
    const [row] = await this.database.read<RowDataPacket & { delivered: number }>(
      `SELECT EXISTS (
         SELECT 1 FROM documents d
         WHERE d.client_application_id = a.client_application_id AND d.type = ? AND d.delivered = 1
       ) AS delivered
       FROM applications a WHERE client_application_id = ?`,
      [type, id],
    );
    return row === undefined ? undefined : row.delivered === 1;
  }

  /** The account of an allocation, empty when there is no such allocation. */
  async accountOf(id: string): Promise<string> {
    const [row] = await this.database.read('SELECT account FROM allocations WHERE client_allocation_id = ?', [id]);
    return (row?.account as string | undefined) ?? '';
  }

  /** The applications the broker has, in the order it took them. */
  async applications(
    afterSequence: number,
    id: string,
  ): Promise<MessageInitShape<typeof ListApplicationsResponseSchema>> {
    const rows = await this.database.read<ApplicationRow & Received>(
      `SELECT ${applicationColumns},
         (SELECT COUNT(*) FROM received_messages m WHERE m.client_order_id = client_application_id AND m.call_kind = ?) AS received
       FROM applications
       WHERE sequence > ? ${id === '' ? '' : 'AND client_application_id = ?'} ORDER BY sequence LIMIT ?`,
      [Call.SUBMIT_APPLICATION, afterSequence, ...(id === '' ? [] : [id]), maxPage + 1],
    );
    const shown = rows.slice(0, maxPage);
    const documents = await this.#documentsOf(shown.map((row) => row.client_application_id));
    const applications = shown.map((row) => ({
      sequence: BigInt(row.sequence),
      clientApplicationId: row.client_application_id,
      reference: row.reference,
      state: row.state,
      account: row.account,
      rejectReason: row.reject_reason,
      param: row.param,
      timesReceived: row.received,
      documents: (documents.get(row.client_application_id) ?? []).map((document) => ({
        type: document.type,
        sha256: Buffer.from(document.sha256, 'hex'),
        sizeBytes: document.size_bytes,
        timesReceived: document.times_received,
        delivered: document.delivered === 1,
      })),
    }));
    return { applications, hasMore: rows.length > maxPage };
  }

  /** The allocations the broker has, in the order it took them. */
  async allocations(
    afterSequence: number,
    id: string,
  ): Promise<MessageInitShape<typeof ListAllocationsResponseSchema>> {
    const rows = await this.database.read<AllocationRow & Received>(
      `SELECT ${allocationColumns},
         (SELECT COUNT(*) FROM received_messages m WHERE m.client_order_id = client_allocation_id AND m.call_kind = ?) AS received
       FROM allocations
       WHERE sequence > ? ${id === '' ? '' : 'AND client_allocation_id = ?'} ORDER BY sequence LIMIT ?`,
      [Call.SUBMIT_ALLOCATION, afterSequence, ...(id === '' ? [] : [id]), maxPage + 1],
    );
    const allocations = rows.slice(0, maxPage).map((row) => ({
      sequence: BigInt(row.sequence),
      account: row.account,
      amountKobo: BigInt(row.amount_kobo),
      record: allocationRecordMessage(allocationFromRow(row)),
      timesReceived: row.received,
    }));
    return { allocations, hasMore: rows.length > maxPage };
  }

  /** The broker's accounts by their codes, with their cash. */
  async accounts(afterAccount: string): Promise<MessageInitShape<typeof ListAccountsResponseSchema>> {
    const rows = await this.database.read<RowDataPacket & { account: string; status: number; cash: number }>(
      `SELECT a.account, a.status, COALESCE(c.balance_kobo, 0) AS cash
       FROM accounts a LEFT JOIN cash c ON c.account = a.account
       WHERE a.account > ? ORDER BY a.account LIMIT ?`,
      [afterAccount, maxPage + 1],
    );
    const accounts = rows
      .slice(0, maxPage)
      .map(({ account, status, cash }) => ({ account, status, cashKobo: BigInt(cash) }));
    return { accounts, hasMore: rows.length > maxPage };
  }

  async #documentsOf(ids: readonly string[]): Promise<Map<string, DocumentRow[]>> {
    if (ids.length === 0) return new Map();
    const rows = await this.database.read<DocumentRow>(
      `SELECT ${documentColumns} FROM documents WHERE client_application_id IN (?) ORDER BY type, first_received`,
      [ids],
    );
    const documents = new Map<string, DocumentRow[]>();
    for (const row of rows) {
      const of = documents.get(row.client_application_id);
      if (of === undefined) documents.set(row.client_application_id, [row]);
      else of.push(row);
    }
    return documents;
  }
}

interface Received {
  received: number;
}
