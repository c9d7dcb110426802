import { curlLanguage } from './curl.ts';
import { go } from './go.ts';
import { grpcurl } from './grpcurl.ts';
import type { SampleLanguage } from './language.ts';
import { python } from './python.ts';
import { typescript } from './typescript.ts';

/** Every language of the reference, in the order in which they are shown. */
export const languages: readonly SampleLanguage[] = [curlLanguage, typescript, python, go, grpcurl];
