/** Archives and sums of which two builds of a commit are identical. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { commitSeconds } from './project.ts'

/** Files of the release folder that are about the others. */
const SUMS = 'SHA256SUMS'

/** Modes that depend neither on the umask nor on what a package happens to contain. */
export function setModes(folder: string, executables: ReadonlySet<string>): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    const found = lstatSync(path)
    const isOpen = found.isDirectory() || executables.has(name)
    if (!found.isSymbolicLink()) chmodSync(path, isOpen ? 0o755 : 0o644)
  }
  chmodSync(folder, 0o755)
}

/** Packs a folder under its own name and compresses it; gzip gets neither name nor time. */
export function packFolder(folder: string, file: string): void {
  const tar = [...sameBytes(), '-C', dirname(folder), basename(folder)]
  const output = openSync(file, 'w')
  try {
    // gzip (6 takes a third of the time of 9 and 0.6 % more space) and not Node's zlib, whose output may depend on the processor.
    execFileSync('sh', ['-c', 'tar -c "$@" | gzip -6 -n', 'sh', ...tar], {
      stdio: ['ignore', output, 'inherit'],
    })
  } finally {
    closeSync(output)
  }
}

/** Packs the files of a folder without compression. */
export function packFiles(folder: string, file: string): void {
  const files = readdirSync(folder).sort()
  execFileSync('tar', ['-c', ...sameBytes(), '-f', file, '-C', folder, ...files])
}

/** Options of tar: sorted names, the time of the commit, no owner. */
function sameBytes(): readonly string[] {
  const time = `--mtime=@${commitSeconds()}`
  return ['--format=ustar', '--sort=name', time, '--owner=0', '--group=0', '--numeric-owner']
}

/** Writes the sums of all other files of the folder, for `sha256sum --check`. */
export function writeSums(folder: string): void {
  const lines = readdirSync(folder)
    .filter((name) => name !== SUMS)
    .sort()
    .map((name) => `${sha256(join(folder, name))}  ${name}\n`)
  writeFileSync(join(folder, SUMS), lines.join(''))
}

export function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
