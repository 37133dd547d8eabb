/**
 * Replaces some functions of `node:fs/promises` in the simulation. The files of a process are in its
 * memory: it never finds those of an earlier one.
 */
import { needProcess } from './interception.ts'

export async function mkdtemp(prefix: string): Promise<string> {
  return `${prefix}${needProcess('fs.mkdtemp').pid}`
}

/** Folders exist when they have files. */
export async function mkdir(): Promise<void> {}

export async function rm(path: string): Promise<void> {
  const { files } = needProcess('fs.rm')
  for (const name of files.keys()) {
    if (name === path || name.startsWith(`${path}/`)) files.delete(name)
  }
}
