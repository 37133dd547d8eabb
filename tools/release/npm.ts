import { execFileSync } from 'node:child_process'

/** Runs npm in a folder and returns its output; its warnings are shown only when it fails. */
export function npm(args: readonly string[], folder: string): string {
  return execFileSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  })
}
