/** Builds the web page: bundles `ui/` into a folder of files that never change under their names. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

const root = join(import.meta.dirname, '..')

/** Writes `index.html`, `assets/` and, beside each file, its compressed forms. */
export async function buildPage(folder: string): Promise<void> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: { main: 'ui/src/main.tsx', icon: 'ui/icon.svg' },
    outdir: folder,
    entryNames: 'assets/[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome116', 'firefox124', 'safari17.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  mkdirSync(join(folder, 'assets'), { recursive: true })
  const files = result.outputFiles.map(({ path, contents }) => ({ path, contents }))
  const page = Buffer.from(indexPage(result.metafile, folder))
  for (const { path, contents } of [
    ...files,
    { path: join(folder, 'index.html'), contents: page },
  ]) {
    writeFileSync(path, contents)
    writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }))
    writeFileSync(`${path}.br`, brotliCompressSync(contents, brotliOptions(contents.length)))
  }
}

/** The template with the names of the bundled files, relative to the page. */
function indexPage({ outputs }: Metafile, folder: string): string {
  const names = Object.keys(outputs).map((output) => output.slice(output.lastIndexOf('assets/')))
  const named = (pattern: RegExp): string => {
    const name = names.find((one) => pattern.test(one))
    if (name === undefined) throw new Error(`the build has no ${pattern} in ${folder}`)
    return name
  }
  return readFileSync(join(root, 'ui/page.html'), 'utf8')
    .replace('{{script}}', named(/main-\w+\.js$/))
    .replace('{{style}}', named(/main-\w+\.css$/))
    .replace('{{icon}}', named(/icon-\w+\.svg$/))
}

function brotliOptions(size: number): { readonly params: Record<number, number> } {
  return {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: size,
    },
  }
}
