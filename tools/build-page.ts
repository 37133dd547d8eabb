/** Builds the web page: bundles `ui/` into a folder of files that never change under their names. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

const root = join(import.meta.dirname, '..')
/** The limit for all scripts and styles together, gzipped: the page is also opened through slow tunnels. */
const GZIPPED_BYTES_MAX = 80 * 1024

/**
 * Writes `index.html`, `assets/` and, beside each file, its compressed forms; and `packages.json`,
 * which is not served: the paths of the packages whose code is in the files, whose licences a
 * release must have. There are no source maps: they are larger than the page, and the sources are
 * public. Two builds of the same sources are identical, wherever they are made.
 */
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
    // Their texts are in the folder of licences of a release.
    legalComments: 'none',
    // Else the names of files depend on where a linked node_modules is.
    preserveSymlinks: true,
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  mkdirSync(join(folder, 'assets'), { recursive: true })
  const page = Buffer.from(indexPage(result.metafile, folder))
  let gzippedBytes = 0
  for (const { path, contents } of [
    ...result.outputFiles,
    { path: join(folder, 'index.html'), contents: page },
  ]) {
    const gzipped = gzip(contents)
    if (/\.(js|css)$/.test(path)) gzippedBytes += gzipped.length
    writeFileSync(path, contents)
    writeFileSync(`${path}.gz`, gzipped)
    writeFileSync(`${path}.br`, brotliCompressSync(contents, brotliOptions(contents.length)))
  }
  if (gzippedBytes > GZIPPED_BYTES_MAX) {
    const limit = `more than ${GZIPPED_BYTES_MAX}`
    throw new Error(`scripts and styles of the page have ${gzippedBytes} bytes gzipped, ${limit}`)
  }
  const packages = JSON.stringify(packagesIn(result.metafile), undefined, 2)
  writeFileSync(join(folder, 'packages.json'), `${packages}\n`)
}

/** Returns paths as package-lock.json has them: `node_modules/preact`. */
export function packagesIn({ inputs }: Pick<Metafile, 'inputs'>): readonly string[] {
  const paths = Object.keys(inputs).flatMap(
    (input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? [],
  )
  return [...new Set(paths)].sort()
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

/** Runs the gzip program, without name and time: the output of Node's zlib depends on the processor. */
function gzip(contents: Uint8Array): Buffer {
  return execFileSync('gzip', ['-9', '-n', '-c'], { input: contents, maxBuffer: 2 ** 26 })
}
