import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { etcdctl } from './full-etcd.ts'
import { ADMIN_TOKEN, Replicas } from './replicas.ts'

/** A snippet of a page that can be run, and its expected output. */
export interface Snippet {
  readonly language: string
  /** The line of the page where it begins. */
  readonly line: number
  readonly code: string
  readonly output: string
}

const OUTPUT = 'text'

/** The fenced blocks of a page: each one in a language is followed by one with its output. */
export function readSnippets(page: string): Snippet[] {
  const snippets: Snippet[] = []
  let open: { readonly language: string; readonly line: number; readonly code: string } | undefined
  for (const { language, line, code } of fencedBlocks(readFileSync(page, 'utf8'))) {
    if (language !== OUTPUT) {
      if (open !== undefined) throw new Error(`line ${open.line}: the snippet has no output block`)
      open = { language, line, code }
    } else {
      if (open === undefined) throw new Error(`line ${line}: the output block has no snippet`)
      snippets.push({ ...open, output: code })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`line ${open.line}: the snippet has no output block`)
  return snippets
}

function* fencedBlocks(
  text: string,
): Generator<{ readonly language: string; readonly line: number; readonly code: string }> {
  for (const match of text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const line = text.slice(0, match.index).split('\n').length
    yield { language: match[1] ?? '', line, code: match[2] ?? '' }
  }
}

/** A server, and the environment that the page says its snippets need. For `await using`. */
export class SnippetServer implements AsyncDisposable {
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string
  readonly #replicas: Replicas

  static async start(flags: readonly string[] = []): Promise<SnippetServer> {
    const replicas = await Replicas.start(1, flags)
    const folder = await mkdtemp(join(tmpdir(), 'tidings-snippets-'))
    const server = await writeKubeconfig(folder, replicas)
    return new SnippetServer(replicas, folder, {
      HOME: folder,
      KUBECONFIG: join(folder, 'kubeconfig'),
      SERVER: server,
      CA: join(folder, 'ca.crt'),
      TOKEN: ADMIN_TOKEN,
    })
  }

  private constructor(replicas: Replicas, folder: string, env: Readonly<Record<string, string>>) {
    this.#replicas = replicas
    this.#folder = folder
    this.env = env
  }

  /** Compacts etcd up to this version, and starts another server, which knows no older one. */
  async forget(version: string): Promise<void> {
    await etcdctl(this.#replicas.etcd, `compact ${Math.floor(Number(version) / 1000)}`)
    await this.#replicas.startOne(0)
    await writeKubeconfig(this.#folder, this.#replicas)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replicas[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Resolves to the address of the server. */
async function writeKubeconfig(folder: string, replicas: Replicas): Promise<string> {
  const { port, ca } = replicas.server(0)
  const server = `https://127.0.0.1:${port}`
  await writeFile(join(folder, 'ca.crt'), ca)
  await writeFile(join(folder, 'kubeconfig'), kubeconfig(server, join(folder, 'ca.crt')))
  return server
}

/** JSON is YAML, too. */
function kubeconfig(server: string, ca: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tidings', cluster: { server, 'certificate-authority': ca } }],
    users: [{ name: 'admin', user: { token: ADMIN_TOKEN } }],
    contexts: [{ name: 'tidings', context: { cluster: 'tidings', user: 'admin' } }],
    'current-context': 'tidings',
  })
}
