import { chmod, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Mode of the folder of a mounted ConfigMap or Secret. */
const FOLDER_MODE = 0o1777
/** The mode of files in a volume with `defaultMode: 0440`. */
const FILE_MODE = 0o440

/**
 * A ConfigMap or Secret as a kubelet mounts it: files are in a folder with the time in its name, the
 * link `..data` points at it, and each file is a link through `..data`. A change writes another
 * folder and then replaces `..data`, so all files change at once.
 */
export class MountedVolume {
  readonly #folder: string
  #current: string | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Replaces all files, by path in the folder. */
  async write(files: Readonly<Record<string, string>>): Promise<void> {
    if (this.#current === undefined) {
      await mkdir(this.#folder, { recursive: true })
      await chmod(this.#folder, FOLDER_MODE)
    }
    const fresh = await mkdtemp(join(this.#folder, '..2026_11_16_'))
    await chmod(fresh, 0o755)
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(fresh, path)), { recursive: true })
      await writeFile(join(fresh, path), content, { mode: FILE_MODE })
    }
    await symlink(basename(fresh), join(this.#folder, '..data_tmp'))
    await rename(join(this.#folder, '..data_tmp'), join(this.#folder, '..data'))
    const tops = new Set(Object.keys(files).map((path) => path.split('/')[0] ?? ''))
    for (const top of tops) {
      await symlink(join('..data', top), join(this.#folder, top)).catch((error) => {
        if (error.code !== 'EEXIST') throw error
      })
    }
    for (const name of await readdir(this.#folder)) {
      if (!name.startsWith('..') && !tops.has(name)) await rm(join(this.#folder, name))
    }
    if (this.#current !== undefined) await rm(this.#current, { recursive: true })
    this.#current = fresh
  }
}
