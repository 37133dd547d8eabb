/** The programs that this server works with, which releases are supported, and what tests them. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { etcdBinary } from '../../test/support/etcd.ts'
import { otherEtcds, versionOf } from '../other-etcds.ts'

const root = join(import.meta.dirname, '../..')

/** An installed release. */
export interface Release {
  readonly version: string
  readonly path: string
}

export interface Run {
  readonly suite: string
  /** Further arguments of the suite. */
  readonly args?: (release: Release) => readonly string[]
  /** What was tested, read from the suite's output. */
  readonly count: (output: string) => number
  readonly counted: string
}

export interface Part {
  readonly id: string
  readonly name: string
  readonly supported: string
  /** What runs before every change. */
  readonly inCi: string
  readonly installed: () => readonly Release[]
  /** Environment variables that select the release. */
  readonly variables?: (release: Release) => Readonly<Record<string, string>>
  readonly runs: readonly Run[]
}

const tests = (suite: string, args?: Run['args']): Run => ({
  suite,
  ...(args && { args }),
  count: passedTests,
  counted: 'tests',
})

export const PARTS: readonly Part[] = [
  {
    id: 'etcd',
    name: 'etcd',
    supported: '3.5.28 or newer; in 3.6, 3.6.9 or newer; 3.7',
    inCi: 'everything with 3.5; contract, conformance and chaos:short with each that is installed',
    installed: () => [
      { version: versionOf(etcdBinary), path: etcdBinary },
      ...otherEtcds.map(({ version, program }) => ({ version, path: program })),
    ],
    variables: ({ path }) => ({ ETCD: path }),
    runs: ['contract', 'conformance', 'chaos:short'].map((suite) => tests(suite)),
  },
  {
    id: 'etcd-upgrade',
    name: 'etcd, upgraded and downgraded under load',
    supported: 'by one minor version at a time',
    inCi: '',
    installed: () => {
      const newest = otherEtcds.at(-1)
      if (newest === undefined) return []
      return [{ version: `${versionOf(etcdBinary)} to ${newest.version} and back`, path: '' }]
    },
    runs: [
      {
        suite: 'etcd-upgrade',
        count: (output) => lastNumber(output, /^(\d+) requests: /gm),
        counted: 'requests',
      },
    ],
  },
  {
    id: 'api',
    name: 'Kubernetes, whose Event API is served',
    supported: '1.37',
    inCi: 'recorded responses',
    installed: () => servers('kube-apiserver').filter(({ version }) => version.startsWith('1.37')),
    variables: ({ path }) => ({ KUBE_APISERVER: path }),
    runs: [
      {
        suite: 'differential',
        args: () => ['--requests', '20000'],
        count: (output) => lastNumber(output, /: (\d+) requests compared/g),
        counted: 'requests',
      },
    ],
  },
  {
    id: 'origin',
    name: 'Kubernetes, mirrored',
    supported: '1.27 or newer',
    inCi: 'a mirrored tidings, whose answers are those of Kubernetes',
    installed: () => servers('kube-apiserver').filter(hasControllers),
    variables: ({ path }) => ({
      KUBE_APISERVER: path,
      KUBE_CONTROLLER_MANAGER: beside(path, 'kube-controller-manager'),
      KUBE_SCHEDULER: beside(path, 'kube-scheduler'),
    }),
    runs: [
      {
        suite: 'mirror',
        args: () => ['4'],
        count: (output) => lastNumber(output, /^events that existed at the origin +(\d+)$/gm),
        counted: 'events',
      },
    ],
  },
  {
    id: 'kubectl',
    name: 'kubectl',
    supported: '1.27 or newer',
    inCi: '1.36',
    installed: () => [
      ...globSync('/usr/lib/google-cloud-sdk/bin/kubectl.1.*').map(released),
      ...unpacked('.cache/kubectl-1.36/usr/bin/kubectl', '1.36'),
      ...servers('kubectl'),
    ],
    runs: [
      tests('kubectl', ({ version }) => {
        const minor = version.split('.', 2).join('\\.')
        return [`--test-name-pattern=kubectl ${minor} `]
      }),
    ],
  },
  {
    id: 'client-go',
    name: 'client-go',
    supported: '0.36 or newer',
    inCi: '',
    installed: () => [
      ...unpacked('.cache/client-go/usr/share/gocode', '0.36'),
      ...globSync('.cache/servers/client-go-*', { cwd: root }).map((path) =>
        released(join(root, path)),
      ),
    ],
    variables: ({ path }) => ({ CLIENT_GO: path }),
    runs: [tests('client-go', () => ['client-go.test'])],
  },
  {
    id: 'client-node',
    name: '`@kubernetes/client-node`',
    supported: '2.0 or newer',
    inCi: 'e2e',
    installed: () => {
      const file = join(root, 'node_modules/@kubernetes/client-node/package.json')
      return [{ version: JSON.parse(readFileSync(file, 'utf8')).version, path: file }]
    },
    runs: [tests('e2e', () => ['client-node'])],
  },
]

/** Programs in `.cache/servers`, each named with its version. */
function servers(program: string): readonly Release[] {
  return globSync(`.cache/servers/${program}-[0-9]*`, { cwd: root })
    .toSorted()
    .map((path) => released(join(root, path)))
}

/** The version is the end of the name. */
function released(path: string): Release {
  const [, version = ''] = /[-.](\d+\.\d+[^/]*)$/.exec(basename(path)) ?? []
  return { version, path }
}

/** What `npm run tools` has unpacked. */
function unpacked(path: string, version: string): readonly Release[] {
  const full = join(root, path)
  return existsSync(full) ? [{ version, path: full }] : []
}

function hasControllers({ path }: Release): boolean {
  return ['kube-controller-manager', 'kube-scheduler'].every((name) =>
    existsSync(beside(path, name)),
  )
}

/** Another program of the same release. */
function beside(path: string, program: string): string {
  return path.replace('kube-apiserver', program)
}

function passedTests(output: string): number {
  return [...output.matchAll(/^ℹ pass (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
}

function lastNumber(output: string, pattern: RegExp): number {
  return Number([...output.matchAll(pattern)].at(-1)?.[1] ?? 0)
}
