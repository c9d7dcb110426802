import type { MessageInitShape } from '@bufbuild/protobuf';
import type { RowDataPacket } from 'mysql2/promise';
import type { DocumentType } from '../../gen/marina/broker/v1/applications_pb.ts';
import {
  Call,
  type ListAccountsResponseSchema,
  type ListAllocationsResponseSchema,
  type ListApplicationsResponseSchema,
} from '../../gen/marina/simulator/v1/controls_pb.ts';
import { groupBy } from '../../kit/group.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import { listPage, maxPage } from '../store/pages.ts';
import { allocationRecordMessage } from './messages.ts';
import type { ApplicationEvent, DocumentFile } from './model.ts';
import { allocations, applicationReports, applications, documents } from './tables.ts';

/** More reports than an application can have. */
const maxReports = 100;

/** Reads the back office's tables. */
export class BackOfficeRecords {
  constructor(
    private readonly database: SimulatorDatabase,
    /** The money that each account begins with. */
    private readonly startCashKobo = 0n,
  ) {}

  /** Whether the broker has an application, and its reports above a number. */
  async reportsOf(id: string, afterNumber: number) {
    const found = await this.database.read('SELECT 1 FROM applications WHERE client_application_id = ?', [id]);
    const rows = await this.database.read(
      `SELECT ${applicationReports.columns} FROM application_reports
       WHERE client_application_id = ? AND number > ? ORDER BY number LIMIT ?`,
      [id, afterNumber, maxReports],
    );
    return { found: found.length > 0, reports: rows.map(applicationReports.fromRow) };
  }

  /** Reports above a number, up to the last that readers may see. */
  async reportsAfter(number: number, last: number, limit: number): Promise<ApplicationEvent[]> {
    const rows = await this.database.read(
      `SELECT ${applicationReports.columns} FROM application_reports
       WHERE number > ? AND number <= ? ORDER BY number LIMIT ?`,
      [number, last, limit],
    );
    return rows.map(applicationReports.fromRow);
  }

  /** An application's magic first name, if it has one, and how often a document of a type came. */
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

  /** Whether the broker has a document of a type; undefined for an unknown application. */
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

  /** The account of an allocation; empty for an unknown allocation. */
  async accountOf(id: string): Promise<string> {
    const [row] = await this.database.read('SELECT account FROM allocations WHERE client_allocation_id = ?', [id]);
    return (row?.account as string | undefined) ?? '';
  }

  /** The broker's applications, in the order in which they came. */
  async applications(after: number, id: string): Promise<MessageInitShape<typeof ListApplicationsResponseSchema>> {
    const key = 'client_application_id';
    const page = await listPage(this.database, applications, { key, call: Call.SUBMIT_APPLICATION, after, id });
    const files = await this.#filesOf(page.found.map(([application]) => application.clientApplicationId));
    const shown = page.found.map(([application, timesReceived]) => ({
      sequence: BigInt(application.sequence),
      clientApplicationId: application.clientApplicationId,
      reference: application.reference,
      state: application.state,
      account: application.account,
      rejectReason: application.rejectReason,
      param: application.param,
      timesReceived,
      documents: (files.get(application.clientApplicationId) ?? []).map((file) => ({
        type: file.type,
        sha256: Buffer.from(file.sha256, 'hex'),
        sizeBytes: file.sizeBytes,
        timesReceived: file.timesReceived,
        delivered: file.delivered,
      })),
    }));
    return { applications: shown, hasMore: page.hasMore };
  }

  /** The broker's allocations, in the order in which they came. */
  async allocations(after: number, id: string): Promise<MessageInitShape<typeof ListAllocationsResponseSchema>> {
    const key = 'client_allocation_id';
    const page = await listPage(this.database, allocations, { key, call: Call.SUBMIT_ALLOCATION, after, id });
    const shown = page.found.map(([allocation, timesReceived]) => ({
      sequence: BigInt(allocation.sequence),
      account: allocation.account,
      amountKobo: BigInt(allocation.amountKobo),
      record: allocationRecordMessage(allocation),
      timesReceived,
    }));
    return { allocations: shown, hasMore: page.hasMore };
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
      .map(({ account, status, cash }) => ({ account, status, cashKobo: BigInt(cash) + this.startCashKobo }));
    return { accounts, hasMore: rows.length > maxPage };
  }

  async #filesOf(ids: readonly string[]): Promise<Map<string, DocumentFile[]>> {
    if (ids.length === 0) return new Map();
    const rows = await this.database.read(
      `SELECT ${documents.columns} FROM documents WHERE client_application_id IN (?) ORDER BY type, first_received`,
      [ids],
    );
    return groupBy(rows.map(documents.fromRow), (file) => file.clientApplicationId);
  }
}
