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
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, checkNote, instantMs, isWhole, text, whole } from '../validation.ts';
import { attempt, carrySubmission, completeUntil, receipt } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers, type WireCall } from '../wire/rpc.ts';
import type { Wire } from '../wire/wire.ts';
import type { World } from '../world.ts';
import { faultOf, firstNameMagic, lastNameMagic } from './magic.ts';
import { applicationReportMessage } from './messages.ts';
import type { BackOfficeNonsense } from './nonsense.ts';
import {
  type BackOfficeSettings,
  type DocumentTaken,
  hasRoomForFile,
  submitApplication,
  takeDocument,
} from './operations.ts';
import type { BackOfficeRecords } from './records.ts';

export interface BackOfficeContext {
  readonly world: World;
  readonly writer: SimulatorWriter;
  readonly records: BackOfficeRecords;
  readonly wire: Wire;
  readonly settings: BackOfficeSettings;
  readonly nonsense: BackOfficeNonsense;
}

/** The broker's limit of a file, in bytes. */
const maxFileBytes = 999_999;
const maxFieldBytes = 200;

/** The broker's service for applications without its stream. Each call passes the faults first. */
export function applicationsService(context: BackOfficeContext): SimulatorHandlers<typeof Applications> {
  return {
    submitApplication: (request, call) => submit(context, request, call),
    lookUpApplication: (request, call) => lookUp(context, request, call),
    sendDocument: (request, call) => sendDocument(context, request, call),
    lookUpDocument: (request, call) => lookUpDocument(context, request, call),
  };
}

/** The common part of all calls about an application. They name no account. */
function legOf({ writer, world }: BackOfficeContext, kind: Call, clientId: string, call: WireCall) {
  const receive = receipt(world, kind, clientId, call);
  const received = (unit: UnitOfWork, taken: boolean, recorded?: number) => receive(unit, '', taken, recorded);
  const record = () => writer.run([], (unit) => received(unit, false));
  return { received, leg: { call: kind, clientId, account: () => '', record } };
}

function submit(context: BackOfficeContext, request: SubmitApplicationRequest, call: WireCall) {
  const { clientApplicationId: id, fields: asked } = request;
  return carrySubmission(context, call, {
    ...{ call: Call.SUBMIT_APPLICATION, kind: 'application', id, account: '', request, needs: { applications: [id] } },
    magicFault: faultOf(lastNameMagic(asked?.lastName ?? '')),
    nonsense: context.nonsense.submitApplication,
    check: checkedFields,
    submit: (unit, fields) => submitApplication(unit, id, fields, instantMs(request.notAfter), context.settings),
    answer: (report) => ({ report: applicationReportMessage(report) }),
  });
}

function lookUp(context: BackOfficeContext, request: LookUpApplicationRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const { clientApplicationId: id } = request;
  const { received, leg } = legOf(context, Call.LOOK_UP_APPLICATION, id, call);
  return wire.carry<MessageInitShape<typeof LookUpApplicationResponseSchema>>(call, {
    ...leg,
    take: async (recorded) => {
      // Through the writer first, so that earlier submissions are in the table.
      await writer.run([], (unit) => received(unit, isWhole(request.afterNumber), recorded));
      const { found, reports } = await records.reportsOf(id, whole(request.afterNumber, 'after_number'));
      return { found, reports: reports.map(applicationReportMessage), completeUntil: completeUntil(world) };
    },
    nonsense: nonsense.lookUpApplication,
  });
}

function lookUpDocument(context: BackOfficeContext, request: LookUpDocumentRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const { clientApplicationId: id, type } = request;
  const { received, leg } = legOf(context, Call.LOOK_UP_DOCUMENT, id, call);
  return wire.carry<MessageInitShape<typeof LookUpDocumentResponseSchema>>(call, {
    ...leg,
    take: async (recorded) => {
      checkType(type);
      // Through the writer first, so that earlier documents are in the table.
      await writer.run([], (unit) => received(unit, true, recorded));
      const has = await records.hasDocument(id, type);
      if (has === undefined) throw new RpcError(status.NOT_FOUND, 'The broker has no such application.');
      const presence = has ? DocumentPresence.DELIVERED : DocumentPresence.MISSING;
      return { presence, completeUntil: completeUntil(world) };
    },
    nonsense: nonsense.lookUpDocument,
  });
}

async function sendDocument(context: BackOfficeContext, request: SendDocumentRequest, call: WireCall) {
  const { writer, wire, records, settings, nonsense } = context;
  const { clientApplicationId: id } = request;
  const { received, leg } = legOf(context, Call.SEND_DOCUMENT, id, call);
  const { magicName, timesReceived } = await records.documentMagic(id, request.type);
  return wire.carry<MessageInitShape<typeof SendDocumentResponseSchema>>(call, {
    ...leg,
    magicFault: timesReceived === 0 ? faultOf(firstNameMagic(magicName)) : undefined,
    record: () =>
      writer.runOn({ applications: [id] }, (unit) => {
        if (isCounted(unit, request)) unit.backOffice.receiveFile(id, request.type, request.content);
        return received(unit, false);
      }),
    take: async (recorded) => {
      const result = await writer.runOn({ applications: [id] }, (unit) => {
        const invalid = attempt(() => checkDocument(request));
        if (invalid instanceof RpcError || !isCounted(unit, request)) {
          received(unit, false, recorded);
          return invalid instanceof RpcError ? invalid : ({ outcome: 'unknown_application' } as const);
        }
        const file = unit.backOffice.receiveFile(id, request.type, request.content, recorded === undefined);
        const taken = takeDocument(unit, request, file, settings);
        received(unit, typeof taken.outcome === 'number', recorded);
        return taken;
      });
      if (result instanceof RpcError) throw result;
      return documentAnswer(result);
    },
    nonsense: nonsense.sendDocument,
  });
}

/** Only a possible document of an existing application counts. The list of messages has every message. */
function isCounted(unit: UnitOfWork, request: SendDocumentRequest): boolean {
  if (attempt(() => checkDocument(request)) instanceof RpcError) return false;
  const { clientApplicationId: id, type } = request;
  return unit.backOffice.application(id) !== undefined && hasRoomForFile(unit, id, type);
}

const documentRefusals: Readonly<Record<Extract<DocumentTaken['outcome'], string>, readonly [status, string]>> = {
  unknown_application: [status.NOT_FOUND, 'The broker has no such application.'],
  too_late: [status.FAILED_PRECONDITION, 'not_after has passed; the document was not taken.'],
  closed: [status.FAILED_PRECONDITION, 'The application is decided; it takes no documents.'],
};

function documentAnswer({ outcome }: DocumentTaken) {
  if (typeof outcome === 'string') throw new RpcError(...documentRefusals[outcome]);
  return { outcome };
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
