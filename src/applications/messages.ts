import { create, type Message } from '@bufbuild/protobuf';
import { type ApplicationFields, ApplicationFieldsSchema } from '../gen/marina/broker/v1/applications_pb.ts';
import {
  type Application,
  ApplicationSchema,
  type ApplicationState,
  ApplicationStateSchema,
  type CreateApplicationRequest,
} from '../gen/marina/gateway/v1/applications_pb.ts';
import { enumWords } from '../lib/enums.ts';
import { shownMessage } from '../lib/shown-message.ts';
import type { ShownApplication } from './table.ts';

export const stateWords = enumWords<typeof ApplicationState>(ApplicationStateSchema);

type FieldOf<Shape extends Message> = Exclude<keyof Shape, keyof Message>;

/** What partners give and what the broker takes have one name. A field that only one of them has does not compile. */
const fieldNames: readonly FieldOf<ApplicationFields>[] = ApplicationFieldsSchema.fields.map(
  ({ localName }) => localName as FieldOf<CreateApplicationRequest>,
);

/** What the broker is told of a customer. It must not outlive the send. */
export function toApplicationFields(request: CreateApplicationRequest): ApplicationFields {
  const fields = create(ApplicationFieldsSchema);
  for (const name of fieldNames) fields[name] = request[name] ?? '';
  return fields;
}

/** The application as partners see it, in answers and in events alike. */
export function toApplicationMessage(application: ShownApplication): Application {
  return shownMessage(ApplicationSchema, application);
}
