/** Archives and sums of which two builds of a commit are identical. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
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

/**
 * Packs a folder under its own name and compresses it, first beside the folder: the file is there
 * when both programs have succeeded. gzip gets neither name nor time.
 */
export function packFolder(folder: string, file: string): void {
  const tar = `${folder}.tar`
  execFileSync('tar', ['-c', ...sameBytes(), '-f', tar, '-C', dirname(folder), basename(folder)])
  // gzip (6 takes a third of the time of 9 and 0.6 % more space) and not Node's zlib, whose output
  // may depend on the processor.
  execFileSync('gzip', ['-6', '-n', '--force', tar])
  moveFile(`${tar}.gz`, file)
}

/** Moves a file, across filesystems too; nobody finds half a file under the new name. */
function moveFile(from: string, to: string): void {
  const part = `${to}.part`
  copyFileSync(from, part)
  renameSync(part, to)
  rmSync(from)
}

/** Packs the files of a folder without compression. */
export function packFiles(folder: string, file: string): void {
  const files = readdirSync(folder).sort()
  const tar = `${folder}.tar`
  execFileSync('tar', ['-c', ...sameBytes(), '-f', tar, '-C', folder, ...files])
  moveFile(tar, file)
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
