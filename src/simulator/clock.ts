import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { StatedTime } from '../gen/marina/simulator/v1/controls_pb.ts';
import { SystemClock } from '../lib/clock.ts';

/**
 * The simulator's clock, which can be wrong. What it does goes by the right time (`now`, `realNow`); what it judges and
 * reports goes by the time it shows.
 */
export class SimulatorClock extends SystemClock {
  /** How far the time it shows is ahead of the right one. */
  errorMs = 0;
  /** What its answers state. */
  stated = StatedTime.UNSPECIFIED;

  /** Business time as its reports have it. */
  shownNow(): number {
    return this.now() + this.errorMs;
  }

  /** Real time as it judges `not_after`. */
  shownRealNow(): number {
    return this.realNow() + this.errorMs;
  }

  /** The real time that an answer states. */
  statement(): Timestamp | undefined {
    if (this.stated === StatedTime.NONE) return undefined;
    return timestampFromMs(this.stated === StatedTime.RIGHT ? this.realNow() : this.shownRealNow());
  }
}
