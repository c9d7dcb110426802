import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  type ApplicationFields,
  ApplicationFieldsSchema,
  type Applications,
  DocumentPresence,
  DocumentType,
  type LookUpApplicationRequest,
  type LookUpApplicationResponseSchema,
  type LookUpDocumentRequest,
  type LookUpDocumentResponseSchema,
  type SendDocumentRequest,
  type SendDocumentResponseSchema,
  type SubmitApplicationRequest,
  type SubmitApplicationResponseSchema,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { attempt, completeUntil, receipt } from '../legs.ts';
import { RpcError, type UnaryHandlers, type WireCall } from '../rpc.ts';
import type { UnitOfWork } from '../unit-of-work.ts';
import { check, checkNote, instantMs, isWhole, text, whole } from '../validation.ts';
import type { Wire } from '../wire.ts';
import type { World } from '../world.ts';
import type { Writer } from '../writer.ts';
import { faultOf, firstNameMagic, lastNameMagic } from './magic.ts';
import type { BackOfficeNonsense } from './nonsense.ts';
import { type DocumentTaken, hasRoomForFile, type OfficeSettings, submitApplication, takeDocument } from './office.ts';
import type { BackOfficeRecords } from './records.ts';
import { applicationReportMessage } from './rows.ts';

/** What the back office's services are made of. */
export interface BackOfficeContext {
  readonly world: World;
  readonly writer: Writer;
  readonly records: BackOfficeRecords;
  readonly wire: Wire;
  readonly office: OfficeSettings;
  readonly nonsense: BackOfficeNonsense;
}

/** The broker's rule for a file's size in bytes. */
const maxFileBytes = 999_999;
const maxFieldBytes = 200;

/** The broker's service for applications, less its stream: each call goes over the wire of faults first. */
export function applicationsService(context: BackOfficeContext): UnaryHandlers<typeof Applications> {
  return {
    submitApplication: (request, call) => submit(context, request, call),
    lookUpApplication: (request, call) => lookUp(context, request, call),
    sendDocument: (request, call) => sendDocument(context, request, call),
    lookUpDocument: (request, call) => lookUpDocument(context, request, call),
  };
}

function submit(context: BackOfficeContext, request: SubmitApplicationRequest, call: WireCall) {
  const { writer, wire, office, world, nonsense } = context;
  const { clientApplicationId: id } = request;
  const received = receipt(world, Call.SUBMIT_APPLICATION, id, call);
  return wire.carry<MessageInitShape<typeof SubmitApplicationResponseSchema>>(call, {
    call: Call.SUBMIT_APPLICATION,
    clientId: id,
    account: () => '',
    magicFault: faultOf(lastNameMagic(request.fields?.lastName ?? '')),
    record: () => writer.run([], (unit) => received(unit, '', false)),
    take: async (recorded) => {
      const result = await writer.runOn({ applications: [id] }, (unit) => {
        const fields = attempt(() => checkedFields(request));
        if (fields instanceof RpcError) {
          received(unit, '', false, recorded);
          return fields;
        }
        const submitted = submitApplication(unit, id, fields, instantMs(request.notAfter), office);
        received(unit, '', submitted.outcome === 'taken', recorded);
        if (submitted.outcome === 'taken') unit.submitted(id, request.note);
        return submitted;
      });
      if (result instanceof RpcError) throw result;
      if (result.outcome === 'taken') return { report: applicationReportMessage(result.result) };
      throw result.outcome === 'seen_before'
        ? new RpcError(status.ALREADY_EXISTS, 'The client application id was received before.')
        : new RpcError(status.FAILED_PRECONDITION, 'not_after has passed; the application was not taken.');
    },
    nonsense: nonsense.submitApplication,
  });
}

function lookUp(context: BackOfficeContext, request: LookUpApplicationRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const { clientApplicationId: id } = request;
  const received = receipt(world, Call.LOOK_UP_APPLICATION, id, call);
  return wire.carry<MessageInitShape<typeof LookUpApplicationResponseSchema>>(call, {
    call: Call.LOOK_UP_APPLICATION,
    clientId: id,
    account: () => '',
    record: () => writer.run([], (unit) => received(unit, '', false)),
    take: async (recorded) => {
      // Through the writer first: what was submitted before this look-up is then in the table it reads.
      await writer.run([], (unit) => received(unit, '', isWhole(request.afterNumber), recorded));
      const { found, reports } = await records.reportsOf(id, whole(request.afterNumber, 'after_number'));
      return { found, reports: reports.map(applicationReportMessage), completeUntil: completeUntil(world) };
    },
    nonsense: nonsense.lookUpApplication,
  });
}

function lookUpDocument(context: BackOfficeContext, request: LookUpDocumentRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const { clientApplicationId: id, type } = request;
  const received = receipt(world, Call.LOOK_UP_DOCUMENT, id, call);
  return wire.carry<MessageInitShape<typeof LookUpDocumentResponseSchema>>(call, {
    call: Call.LOOK_UP_DOCUMENT,
    clientId: id,
    account: () => '',
    record: () => writer.run([], (unit) => received(unit, '', false)),
    take: async (recorded) => {
      checkType(type);
      // Through the writer first: what was sent before this look-up is then in the table it reads.
      await writer.run([], (unit) => received(unit, '', true, recorded));
      const has = await records.hasDocument(id, type);
      if (has === undefined) throw new RpcError(status.NOT_FOUND, 'The broker has no such application.');
      const presence = has ? DocumentPresence.DELIVERED : DocumentPresence.MISSING;
      return { presence, completeUntil: completeUntil(world) };
    },
    nonsense: nonsense.lookUpDocument,
  });
}

async function sendDocument(context: BackOfficeContext, request: SendDocumentRequest, call: WireCall) {
  const { writer, wire, records, office, world, nonsense } = context;
  const { clientApplicationId: id } = request;
  const received = receipt(world, Call.SEND_DOCUMENT, id, call);
  const { magicName, timesReceived } = await records.documentMagic(id, request.type);
  return wire.carry<MessageInitShape<typeof SendDocumentResponseSchema>>(call, {
    call: Call.SEND_DOCUMENT,
    clientId: id,
    account: () => '',
    magicFault: timesReceived === 0 ? faultOf(firstNameMagic(magicName)) : undefined,
    record: () =>
      writer.runOn({ applications: [id] }, (unit) => {
        if (isCounted(unit, request)) unit.office.receiveFile(id, request.type, request.content);
        return received(unit, '', false);
      }),
    take: async (recorded) => {
      const result = await writer.runOn({ applications: [id] }, (unit) => {
        const invalid = attempt(() => checkDocument(request));
        if (invalid instanceof RpcError || !isCounted(unit, request)) {
          received(unit, '', false, recorded);
          return invalid instanceof RpcError ? invalid : ({ outcome: 'unknown_application' } as const);
        }
        const file = unit.office.receiveFile(id, request.type, request.content, recorded === undefined);
        const taken = takeDocument(unit, request, file, office);
        received(unit, '', typeof taken.outcome === 'number', recorded);
        return taken;
      });
      if (result instanceof RpcError) throw result;
      return documentAnswer(result);
    },
    nonsense: nonsense.sendDocument,
  });
}

/** Only what may be a document of an application there is, is counted; everything received is on the list of messages. */
function isCounted(unit: UnitOfWork, request: SendDocumentRequest): boolean {
  if (attempt(() => checkDocument(request)) instanceof RpcError) return false;
  const { clientApplicationId: id, type } = request;
  return unit.office.application(id) !== undefined && hasRoomForFile(unit, id, type);
}

function documentAnswer(taken: DocumentTaken) {
  switch (taken.outcome) {
    case 'unknown_application':
      throw new RpcError(status.NOT_FOUND, 'The broker has no such application.');
    case 'too_late':
      throw new RpcError(status.FAILED_PRECONDITION, 'not_after has passed; the document was not taken.');
    case 'closed':
      throw new RpcError(status.FAILED_PRECONDITION, 'The application is decided; it takes no documents.');
    default:
      return { outcome: taken.outcome };
  }
}

function checkedFields(request: SubmitApplicationRequest): ApplicationFields {
  text(request.clientApplicationId, 'client_application_id', 64);
  checkNote(request);
  const { fields } = request;
  check(fields !== undefined, 'fields');
  for (const { localName, name } of ApplicationFieldsSchema.fields) {
    const value = (fields as unknown as Record<string, string>)[localName] ?? '';
    check(Buffer.byteLength(value) <= maxFieldBytes, name);
  }
  return fields;
}

function checkDocument({ clientApplicationId, type, contentType, content }: SendDocumentRequest): void {
  text(clientApplicationId, 'client_application_id', 64);
  checkType(type);
  check(contentType === 'image/jpeg' || contentType === 'image/png', 'content_type');
  check(content.length > 0 && content.length <= maxFileBytes, 'content');
}

function checkType(type: DocumentType): void {
  check(type !== DocumentType.UNSPECIFIED && type in DocumentType, 'type');
}
