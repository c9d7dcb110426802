import { create } from '@bufbuild/protobuf';
import { type ApplicationFields, ApplicationFieldsSchema } from '../gen/marina/broker/v1/applications_pb.ts';
import {
  type Application,
  ApplicationRejectReasonSchema,
  ApplicationSchema,
  ApplicationStateSchema,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from '../gen/marina/gateway/v1/applications_pb.ts';
import { enumWords, withStoredNames } from '../lib/enums.ts';
import { toSecond } from '../lib/timestamps.ts';
import type { ApplicationState } from './rules.ts';
import type { ShownApplication } from './table.ts';

export const stateWords = enumWords<ApplicationState>(ApplicationStateSchema);
const rejectReasonWords = enumWords(ApplicationRejectReasonSchema);

/** The field partners give and the one the broker takes have one name. A field only one of them has is an error of ours. */
const fieldNames = ApplicationFieldsSchema.fields.map(({ name, localName }) => {
  const given = CreateApplicationRequestSchema.fields.find((field) => field.name === name);
  if (given?.localName !== localName) throw new Error(`applications have no field ${name}`);
  return localName as Exclude<keyof ApplicationFields, '$typeName' | '$unknown'>;
});
if (fieldNames.length !== CreateApplicationRequestSchema.fields.length) {
  throw new Error('applications have a field the broker does not take');
}

/** What the broker is told of a customer. It must not outlive the send. */
export function toApplicationFields(request: CreateApplicationRequest): ApplicationFields {
  const fields = create(ApplicationFieldsSchema);
  for (const name of fieldNames) fields[name] = request[name] ?? '';
  return fields;
}

/** The application as partners see it, in answers and in events alike. */
export function toApplicationMessage(application: ShownApplication): Application {
  const { state, rejectReason } = application;
  const message = create(ApplicationSchema, {
    id: application.id,
    state: stateWords.value(state),
    reference: application.reference ?? undefined,
    account: application.account ?? undefined,
    reason: application.reason ?? undefined,
    rejectReason: rejectReason === null ? undefined : rejectReasonWords.value(rejectReason),
    param: application.param ?? undefined,
    createdAt: toSecond(application.createdAt),
    updatedAt: toSecond(application.updatedAt),
  });
  return withStoredNames(message, { state, rejectReason });
}
