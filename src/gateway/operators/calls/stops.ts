import { status } from '@grpc/grpc-js';
import {
  type AddStopRequest,
  type ListStopsRequest,
  type StopAction,
  StopActionSchema,
  type Trading,
} from '../../../gen/marina/admin/v1/trading_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import { enumWords } from '../../../kit/enums.ts';
import { isSamePerson } from '../../../kit/operator-tokens.ts';
import type { Database } from '../../store/database.ts';
import type { Decision, SqlRow, Statement } from '../../store/statement.ts';
import type { ShownBy } from '../../store/table.ts';
import { accounts } from '../../trading/accounts/store.ts';
import { isInForce, type StopTarget } from '../../trading/stops/rules.ts';
import { endOverdueStops, listStops, type StoredStop, stops } from '../../trading/stops/table.ts';
import { type environmentState, environments } from '../../trading/submission/environment.ts';
import { audit } from './audit.ts';
import { type AdminCall, type AdminCalls, type AdminParts, listed, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';
import type { IsListed } from './symbol-at-broker.ts';

const maxOpen = 200;
/** One operator leaves room for the stops of others. */
const maxOfOperator = 100;
const longestMs = 400 * 86_400_000;
const actionWords = enumWords<typeof StopAction>(StopActionSchema);

/** Changes the environment's row under its lock. */
export type ChangeEnvironment = <T>(
  decide: (before: ShownBy<typeof environmentState>, rows: readonly SqlRow[][]) => Decision<T>,
  ...reads: readonly Statement[]
) => Promise<T>;

/** The answer of a call that begins or ends a stop. */
interface Changed {
  readonly changed: boolean;
  readonly stop: ReturnType<typeof toMessage>;
}

type StopCalls = Pick<AdminCalls<typeof Trading>, 'addStop' | 'endStop' | 'listStops'>;

/** The operators' calls that begin, end and list stops. */
export function stopCalls(parts: AdminParts, change: ChangeEnvironment, isListed: IsListed): StopCalls {
  const { database, clock } = parts;
  return {
    async addStop({ actions, endsAt, reason, ...target }, call) {
      const wanted = toWanted(target, actions);
      const endsAtMs = endsAt === undefined ? null : toMilliseconds(endsAt);
      if (endsAtMs !== null && (endsAtMs <= clock.now() || endsAtMs > clock.now() + longestMs)) {
        throw invalidField('ends_at', 'must be in the future, and at most 400 days ahead.');
      }
      const partnerId = await ownerOf(database, wanted);
      const begun = await change(
        ({ stopsVersion }, [open = []]) =>
          begin(
            parts,
            { ...wanted, partnerId, endsAt: endsAtMs, reason },
            call,
            stopsVersion,
            open.map(stops.all.read),
          ),
        listStops(false, '', maxOpen * 2),
      );
      const isUnknown = wanted.target === 'symbol' && (await isListed(wanted.value)) === false;
      return {
        ...begun,
        warning: isUnknown ? `the broker lists no instrument ${wanted.value}: compare the symbol` : '',
      };
    },

    async endStop({ id, reason }, call) {
      return change(({ stopsVersion }, [rows = []]) => {
        const [row] = rows;
        if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such stop');
        return end(stops.all.read(row), reason, call, stopsVersion, clock.now());
      }, stops.find({ id }));
    },

    async listStops({ ended, limit, beforeId }: ListStopsRequest) {
      const now = clock.now();
      const { rows, hasMore } = await listed(limit, (most) => database.read(listStops(ended, beforeId, most)));
      return { stops: rows.map((row) => toMessage(stops.all.read(row), now)), hasMore };
    },
  };
}

type Wanted = Pick<StoredStop, 'target' | 'value' | 'actions' | 'partnerId' | 'endsAt' | 'reason'>;

/** Begins a stop, unless the same one is in force. `stored` are the stops that are stored as open. */
function begin(
  { clock, ids }: AdminParts,
  { partnerId, ...wanted }: Wanted,
  call: AdminCall,
  stopsVersion: bigint,
  stored: readonly StoredStop[],
): Decision<Changed> {
  const now = clock.now();
  const inForce = stored.filter((stop) => isInForce(stop, now));
  const same = inForce.find(
    ({ target, value, actions }) => target === wanted.target && value === wanted.value && actions === wanted.actions,
  );
  if (same !== undefined) return { writes: [], result: { changed: false, stop: toMessage(same, now) } };
  if (inForce.length >= maxOpen) {
    throw new AdminError(status.RESOURCE_EXHAUSTED, `${maxOpen} stops are in force: end one first`);
  }
  const own = inForce.filter(({ startedBy }) => isSamePerson(startedBy, call.operator));
  if (own.length >= maxOfOperator) {
    throw new AdminError(status.RESOURCE_EXHAUSTED, `${maxOfOperator} stops of yours are in force: end one first`);
  }
  const made: StoredStop = {
    ...{ id: ids.object('stp'), partnerId, ...wanted, startedBy: call.operator, startedAt: now },
    ...{ endedAt: null, endedBy: null, endReason: null },
  };
  const endsAt = wanted.endsAt === null ? null : new Date(wanted.endsAt).toISOString();
  const entry = { partnerId: partnerId ?? undefined, subject: made.id, detail: { ...wanted, endsAt } };
  const writes = [
    endOverdueStops(now),
    stops.insert(made),
    environments.set({ id: 1 }, { stopsVersion: stopsVersion + 1n }),
    audit(call, now, { ...entry, after: { inForce: true } }),
  ];
  return { writes, result: { changed: true, stop: toMessage(made, now) } };
}

/** Ends a stop, unless it has ended. `now` is business time. */
function end(
  before: StoredStop,
  reason: string,
  call: AdminCall,
  stopsVersion: bigint,
  now: number,
): Decision<Changed> {
  if (before.endedAt !== null || !isInForce(before, now)) {
    return { writes: [], result: { changed: false, stop: toMessage(before, now) } };
  }
  const after = { ...before, endedAt: now, endedBy: call.operator, endReason: reason };
  const { id, partnerId, target, value, actions } = before;
  const entry = { partnerId: partnerId ?? undefined, subject: id, detail: { target, value, actions, reason } };
  const writes = [
    ...stops.update(before, after),
    environments.set({ id: 1 }, { stopsVersion: stopsVersion + 1n }),
    audit(call, now, { ...entry, before: { inForce: true }, after: { inForce: false } }),
  ];
  return { writes, result: { changed: true, stop: toMessage(after, now) } };
}

/** The partner that a stop concerns; null: it may concern several. Throws NOT_FOUND if there is none. */
async function ownerOf(
  database: Database,
  { target, value }: Pick<StoredStop, 'target' | 'value'>,
): Promise<string | null> {
  if (target === 'partner') await requirePartner(database, value);
  if (target === 'partner') return value;
  if (target !== 'account') return null;
  const [row] = await database.read(accounts.find({ account: value }));
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'no partner has this account');
  return accounts.all.read(row).partnerId;
}

/** The target and the actions of a request, as they are stored. */
function toWanted(
  { partnerId, account, symbol, everything }: Pick<AddStopRequest, 'partnerId' | 'account' | 'symbol' | 'everything'>,
  actions: readonly StopAction[],
) {
  const given = [
    ...(everything ? [{ target: 'everything', value: '' } as const] : []),
    ...Object.entries({ partner: partnerId, account, symbol }).flatMap(([target, value]) =>
      value === '' ? [] : [{ target: target as StopTarget, value }],
    ),
  ];
  const [of, ...more] = given;
  if (of === undefined || more.length > 0) {
    throw invalidField('partner_id', 'or `account` or `symbol` or `everything` must be given, and only one of them.');
  }
  const words = [...new Set(actions)].map(actionWords.find);
  if (words.length === 0 || words.length < actions.length || words.includes(undefined)) {
    throw invalidField('actions', 'must name at least one action, and each once.');
  }
  if (of.target === 'account' && words.includes('apply')) {
    throw invalidField('actions', 'must not have apply for an account.');
  }
  if (of.target === 'symbol' && words.some((word) => word !== 'buy' && word !== 'sell')) {
    throw invalidField('actions', 'must be buy, sell or both for a symbol.');
  }
  // In one order, so that the same actions are the same text.
  const inOrder = StopActionSchema.values.map(({ number }) => actionWords.find(number as StopAction));
  return {
    ...of,
    actions: inOrder.filter((word) => word !== undefined && words.includes(word)).join(','),
  };
}

/** A stop as operators see it. `now` is business time. */
function toMessage({ target, value, actions, partnerId: _, ...stop }: StoredStop, now: number) {
  const field = { partner: 'partnerId', account: 'account', symbol: 'symbol', everything: 'everything' } as const;
  return {
    ...stop,
    [field[target]]: target === 'everything' ? true : value,
    actions: actions.split(','),
    inForce: stop.endedAt === null && isInForce(stop, now),
  };
}
