/** The web page as `npm run build` has written it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../dist/ui')

/** A path of the server, and the file that is served there. */
export interface BuiltFile {
  readonly path: string
  /** `''`, `.br` or `.gz`. */
  bytes(suffix: string): Buffer
}

export const INDEX: BuiltFile = {
  path: '/ui/',
  bytes: (suffix) => readFileSync(join(folder, `index.html${suffix}`)),
}

export function builtAssets(): readonly BuiltFile[] {
  return readdirSync(join(folder, 'assets'))
    .filter((name) => !/\.(br|gz)$/.test(name))
    .map((name) => ({
      path: `/ui/assets/${name}`,
      bytes: (suffix) => readFileSync(join(folder, 'assets', `${name}${suffix}`)),
    }))
}

/** The script, which is the longest file. */
export function builtScript(): BuiltFile {
  const script = builtAssets().find(({ path }) => /\/main-.*\.js$/.test(path))
  if (script === undefined) throw new Error('dist/ui has no script: run "npm run build"')
  return script
}
