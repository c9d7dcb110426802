import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { StatedTime } from '../gen/marina/simulator/v1/controls_pb.ts';
import { SystemClock } from '../kit/clock.ts';

/**
 * The simulator's clock, which can be wrong. The simulator acts by the right time (`now`, `realNow`), but judges and
 * reports by the time it shows.
 */
export class SimulatorClock extends SystemClock {
  /** How far the shown time is ahead of the right one. */
  errorMs = 0;
  /** The time that answers state. */
  stated = StatedTime.UNSPECIFIED;

  /** Business time in its reports. */
  shownNow(): number {
    return this.now() + this.errorMs;
  }

  /** Real time by which it judges `not_after`. */
  shownRealNow(): number {
    return this.realNow() + this.errorMs;
  }

  /** The real time that an answer states. */
  statement(): Timestamp | undefined {
    if (this.stated === StatedTime.NONE) return undefined;
    return timestampFromMs(this.stated === StatedTime.RIGHT ? this.realNow() : this.shownRealNow());
  }
}
