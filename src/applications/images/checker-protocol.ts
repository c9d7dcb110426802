/** What the process that decodes is asked: one file at a time. */
export interface Check {
  readonly file: Uint8Array;
  readonly mediaType: string;
}

/** What it answers. */
export interface Checked {
  readonly isWhole: boolean;
  /** What the process takes of memory by now. */
  readonly residentBytes: number;
}
