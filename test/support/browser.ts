import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Browser, chromium } from 'playwright-core';
import { libraryPath, type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled } from '../../src/sandbox/programs.ts';
import { temporaryFolder } from './folders.ts';
import { patient } from './patience.ts';

/** Some 70 MB are downloaded and unpacked to 290. */
const unpackingMs = 180_000;
const program = 'usr/lib/chromium/chromium-headless-shell';

/** Debian's Chromium without its windows, and a font to write with. */
const browserPackages: PackageSet = {
  what: 'Chromium',
  choose: (existing) =>
    ['chromium-headless-shell', 'chromium-common', 'fonts-liberation'].filter((name) => existing(name).includes(name)),
  programs: [program],
  advice: 'Install chromium, or name one with MARINA_TEST_CHROMIUM=/path/to/it.',
};

/**
 * Starts a Chromium: the one that is named or installed, else the distribution's, unpacked next to the sandbox's data. Where
 * none can be had, says why not, unless one is asked for with MARINA_TEST_BROWSER=required: then it throws.
 */
export async function browserOrReason(): Promise<Browser | string> {
  try {
    const tooLong = delay(unpackingMs, undefined, { ref: false }).then(() =>
      Promise.reject(new Error('it took too long')),
    );
    return await Promise.race([startBrowser(), tooLong]);
  } catch (error) {
    if (process.env.MARINA_TEST_BROWSER === 'required') throw error;
    return `there is no Chromium: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
}

async function startBrowser(): Promise<Browser> {
  const named =
    process.env.MARINA_TEST_CHROMIUM ?? findInstalled(['chromium-headless-shell', 'chromium', 'google-chrome'])?.path;
  if (named !== undefined) return launch(named, {});
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'browser');
  await unpackPackages(folder, browserPackages);
  const path = join(folder, program);
  accessSync(path, constants.X_OK);
  return launch(path, { LD_LIBRARY_PATH: libraryPath(folder), FONTCONFIG_FILE: fontSettings(folder) });
}

function launch(executablePath: string, variables: Record<string, string>): Promise<Browser> {
  const env = { ...process.env, ...variables } as Record<string, string>;
  // It shows our own pages only; as root and in containers it has no sandbox of its own.
  return chromium.launch({ executablePath, env, chromiumSandbox: false, timeout: patient(60_000) });
}

/** Where the unpacked fonts are, and those of the system if it has any. */
function fontSettings(folder: string): string {
  const settings = join(folder, 'fonts.conf');
  if (!existsSync(settings)) {
    const cache = join(temporaryFolder(), 'fonts');
    mkdirSync(cache, { recursive: true });
    const folders = [join(folder, 'usr/share/fonts'), '/usr/share/fonts'].map((each) => `<dir>${each}</dir>`).join('');
    const aliases = ['sans', 'mono'].map((kind) => {
      const [generic, font] = kind === 'sans' ? ['system-ui', 'Liberation Sans'] : ['ui-monospace', 'Liberation Mono'];
      return `<alias binding="same"><family>${generic}</family><prefer><family>${font}</family></prefer></alias>`;
    });
    writeFileSync(settings, `<fontconfig>${folders}<cachedir>${cache}</cachedir>${aliases.join('')}</fontconfig>\n`);
  }
  return settings;
}
