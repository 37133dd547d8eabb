/**
 * Every suite of tests and every benchmark: what it runs, what must be built first, and whether it
 * belongs to CI or to the nightly run. tools/test.ts, tools/bench.ts, tools/ci.ts and tools/nightly.ts
 * all read it.
 */
import { globSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** What a suite needs before it starts: `dist/`, the archive in `release/`, or the image too. */
export type Need = 'build' | 'archive' | 'image'

/** A program with its arguments, as Node gets them. */
export type Program = readonly string[]

export interface Suite {
  readonly name: string
  readonly about: string
  readonly needs?: Need
  /** Globs of test files, for Node's test runner. */
  readonly files?: readonly string[]
  /** The limit for one test file. */
  readonly timeoutSeconds?: number
  /** How many test files run at a time. */
  readonly concurrency?: number
  /** All files run in one process, without isolation. */
  readonly sharesProcess?: true
  /** Run one after the other, after the test files. */
  readonly programs?: readonly Program[]
  /**
   * Present if CI runs the suite. Steps run one after the other, the lanes of a step at the same time,
   * and the suites of a lane in the order of this table. There are two cores: a suite that measures,
   * or that keeps both busy, has a step of its own. With `everyEtcd` the suite is repeated after all
   * steps with each other etcd (tools/other-etcds.ts), with these arguments.
   */
  readonly ci?: {
    readonly step: number
    readonly lane: number
    readonly everyEtcd?: readonly string[]
  }
  readonly nightly?: true
  /** What etcd does decides the result: the nightly run repeats the suite with each other etcd. */
  readonly everyEtcd?: true
}

export interface Benchmark {
  readonly name: string
  readonly about: string
  readonly needs?: Need
  readonly program: Program
  readonly nightly?: true
}

export const SUITES: readonly Suite[] = [
  {
    name: 'unit',
    about: 'unit tests and house rules, in one process',
    files: ['src/**/*.test.ts', 'ui/**/*.test.ts', 'tools/**/*.test.ts'],
    timeoutSeconds: 120,
    sharesProcess: true,
    ci: { step: 1, lane: 0 },
  },
  {
    name: 'contract',
    about: 'the storage contract, against both implementations (about 30 s)',
    files: ['test/ci/contract/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 1,
    ci: { step: 1, lane: 0, everyEtcd: [] },
    everyEtcd: true,
  },
  {
    name: 'conformance',
    about: 'recorded responses of a Kubernetes API server (about 15 s)',
    needs: 'build',
    files: ['test/ci/conformance/*.test.ts', 'test/ci/differential/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 1,
    ci: { step: 1, lane: 0, everyEtcd: ['conformance.test'] },
    everyEtcd: true,
  },
  {
    name: 'simulation',
    about: 'the simulated world with known seeds, and with fresh ones for seconds',
    files: ['test/ci/simulation/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 1, lane: 1, everyEtcd: ['etcd-differential'] },
  },
  {
    name: 'fuzz:short',
    about: '10,000 random requests and all heavy ones, with the seed printed',
    needs: 'build',
    files: ['test/ci/fuzz/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 1, lane: 1 },
  },
  {
    name: 'model:short',
    about: '2,000 random queries against a plain filter and sort of all events',
    files: ['test/ci/model/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 1,
    ci: { step: 1, lane: 1 },
  },
  {
    name: 'ui',
    about: 'the page in a browser, with real servers (needs chromium-headless-shell)',
    needs: 'build',
    files: ['test/ci/ui/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 3,
    ci: { step: 2, lane: 0 },
  },
  {
    name: 'measured',
    about: 'tests that measure CPU time, memory or shares, one file at a time (about 2 min)',
    needs: 'build',
    files: ['test/ci/measured/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 3, lane: 0 },
  },
  {
    name: 'integration',
    about: 'parts of the server against a real etcd and real sockets (about 2 min)',
    files: ['test/ci/integration/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 4,
    ci: { step: 4, lane: 0 },
    everyEtcd: true,
  },
  {
    name: 'e2e',
    about: 'the built program against real faults (about 2 min; needs root)',
    needs: 'build',
    files: ['test/ci/e2e/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 3,
    ci: { step: 5, lane: 0 },
    everyEtcd: true,
  },
  // The suites of the last step wait for timers and faults, so three run at a time.
  {
    name: 'release',
    about: 'the release archive (about 1 min)',
    needs: 'archive',
    files: ['test/ci/release/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 1,
    ci: { step: 6, lane: 0 },
  },
  {
    name: 'docs',
    about:
      'follows the README and the tutorials with the archive, and checks all commands in the docs',
    needs: 'archive',
    files: ['test/ci/docs/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 6, lane: 0 },
  },
  {
    name: 'chaos:short',
    about: 'a short chaos run, and its checker (about 1 min)',
    files: ['test/ci/chaos/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 6, lane: 1, everyEtcd: ['short.test', '--test-name-pattern=cached'] },
  },
  {
    name: 'upgrade:short',
    about: 'the current program on the recorded data of each supported release (about 10 s)',
    needs: 'build',
    files: ['test/ci/releases/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    ci: { step: 6, lane: 1 },
    everyEtcd: true,
  },
  {
    name: 'mirror:short',
    about: 'a mirror under faults: 4,000 writes and 20 faults, and one planted bug',
    needs: 'build',
    files: ['test/ci/mirror/*.test.ts'],
    timeoutSeconds: 900,
    concurrency: 1,
    ci: { step: 6, lane: 2 },
  },
  {
    name: 'chart',
    about:
      'the chart with each set of values (about 40 s); KUBE_APISERVER=... applies it to a cluster',
    needs: 'build',
    files: ['test/ci/chart/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 2,
    ci: { step: 6, lane: 2 },
    nightly: true,
  },
  {
    name: 'integration:full',
    about: 'the long integration tests (about 3 min)',
    files: ['test/nightly/integration/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 2,
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'e2e:full',
    about: 'the long tests of the built program (about 8 min)',
    needs: 'build',
    files: ['test/nightly/e2e/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 2,
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'load',
    about:
      'fair shares, overload, crowds, attacks, stalled watchers on a quiet machine (about 7 min)',
    needs: 'build',
    files: ['test/nightly/load/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    nightly: true,
  },
  {
    name: 'ui:full',
    about: 'the page with a million events, its speed and its pictures',
    needs: 'build',
    files: ['test/nightly/ui/*.test.ts'],
    timeoutSeconds: 1200,
    concurrency: 1,
    nightly: true,
  },
  {
    name: 'release:full',
    about:
      'the image, the release script, a second build, and bare Debians (needs root and buildah)',
    needs: 'image',
    files: ['test/ci/release/*.test.ts', 'test/nightly/release/*.test.ts'],
    timeoutSeconds: 1200,
    concurrency: 1,
    nightly: true,
  },
  {
    name: 'simulation:hour',
    about: 'fresh seeds of the simulated world for an hour',
    programs: [['test/simulation/run.ts', '--seconds', '3600', '--operations', '150']],
    nightly: true,
  },
  {
    name: 'simulation:mirror',
    about: 'fresh seeds of the simulated mirror for an hour',
    programs: [
      ['test/simulation/run.ts', '--world', 'mirror', '--minutes', '10', '--seconds', '3600'],
    ],
    nightly: true,
  },
  {
    name: 'simulation:planted',
    about: 'engines with a planted bug: fails unless the simulation finds each',
    programs: [['test/simulation/planted/run.ts']],
    nightly: true,
  },
  {
    name: 'simulation:determinism',
    about:
      'equal hashes of equal seeds, in one process and in fresh ones; [--runs N] [--node PATH]',
    files: ['test/nightly/simulation/*.test.ts'],
    timeoutSeconds: 240,
    concurrency: 1,
    programs: [['test/simulation/determinism.ts']],
    nightly: true,
  },
  {
    name: 'simulation:etcd',
    about: '200,000 random requests to the simulated etcd and to a real one',
    programs: [['test/ci/simulation/etcd-differential.test.ts', '200000']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'model',
    about: '100,000 random queries during writes (about 10 min); [--queries N] [--seed N]',
    programs: [['test/nightly/model/run.ts']],
    nightly: true,
  },
  {
    name: 'fairness',
    about: 'random mixes of greedy clients; [steps [seed]]',
    programs: [['test/nightly/fairness/run.ts']],
    nightly: true,
  },
  {
    name: 'chaos',
    about: '20,000 operations under 40 faults, then planted bugs (about 4 min); see its README',
    programs: [
      ['test/nightly/chaos/run.ts'],
      ['test/nightly/chaos/run.ts', '--scenario', 'planted'],
    ],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'mirror:chaos',
    about: 'a mirror under kills, pauses and partitions, then planted bugs; see its README',
    needs: 'build',
    programs: [
      ['test/nightly/mirror-chaos/run.ts', '--quiet'],
      [
        'test/nightly/mirror-chaos/run.ts',
        '--quiet',
        '--deletes',
        'explicit',
        '--namespaces',
        'default,shop',
        '--writes',
        '20000',
        '--faults',
        '104',
      ],
      ['test/nightly/mirror-chaos/run.ts', '--quiet', '--planted', 'all'],
    ],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'cut-replies',
    about: '5,000 replies cut off after etcd committed (about 2 min); [replies]',
    programs: [['test/nightly/integration/storage-cut-replies.test.ts', '5000']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'targets',
    about: 'a million generated requests: endpoints execute what was authorised (about 30 s)',
    programs: [['test/ci/integration/gate-authorised-target.test.ts', '1000000']],
    nightly: true,
  },
  {
    name: 'workloads',
    about: 'how many of 10,000 pods get the right workload, and which do not; [seed]',
    programs: [['test/nightly/incidents/workloads.ts']],
    nightly: true,
  },
  {
    name: 'clocks',
    about: 'three replicas, one with a wrong clock, 46 cases (about 20 min); [cases at once]',
    needs: 'build',
    programs: [['test/nightly/clocks/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'retention',
    about: 'retention policies that change while the sweeper is killed (5 min)',
    needs: 'build',
    programs: [['test/nightly/retention/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'restore',
    about: 'etcd restored under idle, paused and busy replicas, 18 cases',
    needs: 'build',
    programs: [['test/nightly/restore/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'mirror',
    about:
      'mirrors a real Kubernetes (KUBE_APISERVER=...) through faults (about 12 min); [minutes]',
    needs: 'build',
    files: ['test/nightly/mirror/*.test.ts'],
    timeoutSeconds: 600,
    concurrency: 1,
    programs: [['test/nightly/mirror/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'attacks',
    about: 'each attack at full size; [part of its name]',
    needs: 'build',
    programs: [['test/nightly/attacks/run.ts']],
    nightly: true,
  },
  {
    name: 'overload',
    about:
      'ten times the load, five times in three ways (about 12 min); [--crowd http1] [--runs 5]',
    needs: 'build',
    programs: [['test/nightly/overload/run.ts']],
    nightly: true,
  },
  {
    name: 'memory',
    about: 'resident memory under a steady load for 30 min, at most 350 MiB; [--minutes 3]',
    needs: 'build',
    programs: [['test/nightly/memory/run.ts']],
    nightly: true,
  },
  {
    name: 'memory:container',
    about: 'the same in a container of 512 MiB (podman, root)',
    needs: 'build',
    programs: [['test/nightly/memory/run.ts', '--container']],
    nightly: true,
  },
  {
    name: 'rolling',
    about: 'restarts three replicas behind haproxy under load; [rounds]',
    needs: 'build',
    programs: [['test/nightly/rolling/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'upgrade',
    about:
      'upgrades and rolls back three replicas under load (about 6 min); [--from REF] [--to REF]',
    needs: 'build',
    programs: [['test/nightly/upgrade/run.ts']],
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'etcd-upgrade',
    about:
      'upgrades and downgrades three etcd members under load (needs .cache/servers/etcd-<version>, about 3 min)',
    needs: 'build',
    programs: [['test/nightly/upgrade/etcd.ts']],
    nightly: true,
  },
  {
    name: 'events:full',
    about: 'the guarantees of the Event API under concurrency, at full size',
    needs: 'build',
    programs: globSync('test/{ci,nightly}/{e2e,load}/events-*.test.ts', { cwd: root })
      .toSorted()
      .map((file) => [file, 'full']),
    nightly: true,
    everyEtcd: true,
  },
  {
    name: 'kubectl',
    about: 'every recorded kubectl command, with each release from 1.27 on that is installed',
    needs: 'build',
    files: ['test/ci/e2e/kubectl.test.ts', 'test/nightly/kubectl/*.test.ts'],
    timeoutSeconds: 120,
    concurrency: 1,
    nightly: true,
  },
  {
    name: 'client-go',
    about: 'real clients, informers and recorders of client-go (about 5 min the first time)',
    needs: 'build',
    files: ['test/nightly/client-go/*.test.ts'],
    timeoutSeconds: 600,
    concurrency: 1,
    nightly: true,
  },
  {
    name: 'client-go:full',
    about: '20,000 events of client-go through restarts',
    needs: 'build',
    programs: [['test/nightly/client-go/burst.test.ts', 'full']],
    nightly: true,
  },
  {
    name: 'night',
    about:
      'a known night with 20,000 events, written in every way: incidents and histograms (about 5 min)',
    needs: 'build',
    files: ['test/nightly/night/*.test.ts'],
    timeoutSeconds: 900,
    concurrency: 1,
    programs: [['test/ci/e2e/recorded-night.test.ts', 'full']],
    nightly: true,
  },
  {
    name: 'docs:follow',
    about: 'follows the pages only; KUBE_APISERVER=... also the tutorial that mirrors a cluster',
    needs: 'archive',
    files: ['test/ci/docs/follow.test.ts'],
    timeoutSeconds: 240,
    nightly: true,
  },
  {
    name: 'differential',
    about: 'random requests to a real API server (KUBE_APISERVER=...) and to this one; [--seed N]',
    needs: 'build',
    programs: [['test/nightly/differential/run.ts']],
    nightly: true,
  },
  {
    name: 'fuzz',
    about: 'a million random requests; [--seed N] [--count N] [--kind ...]',
    needs: 'build',
    programs: [['test/nightly/fuzz/run.ts']],
    nightly: true,
  },
  {
    name: 'fuzz:protobuf',
    about: 'a million hostile protobuf bodies',
    programs: [['test/nightly/fuzz/protobuf.ts']],
    nightly: true,
  },
]

export const BENCHMARKS: readonly Benchmark[] = [
  {
    name: 'probe',
    about: 'probes a second, beside a bare Node server (needs h2load)',
    needs: 'build',
    program: ['bench/probe.bench.ts'],
    nightly: true,
  },
  {
    name: 'api',
    about: 'creates, gets and lists a second over TLS, beside bare etcd (needs h2load)',
    needs: 'build',
    program: ['bench/api.bench.ts'],
    nightly: true,
  },
  {
    name: 'cost',
    about:
      'CPU time of each request, by turns; [--only get] [--against dist/main.js] (needs h2load)',
    needs: 'build',
    program: ['bench/cost.bench.ts'],
    nightly: true,
  },
  {
    name: 'compare',
    about: 'this build beside another, by CPU time per request; <dist/main.js> (needs h2load)',
    needs: 'build',
    program: ['bench/compare.bench.ts'],
  },
  {
    name: 'storage',
    about: 'creates a second with and without group commit (needs h2load)',
    program: ['bench/storage.bench.ts'],
    nightly: true,
  },
  {
    name: 'tracing',
    about: 'CPU time of a request that is recorded in a trace (needs h2load, about 5 min)',
    needs: 'build',
    program: ['bench/tracing.bench.ts'],
    nightly: true,
  },
  {
    name: 'decode',
    about: 'the decoder written by hand, beside the library',
    program: ['bench/etcd-decode.bench.ts'],
    nightly: true,
  },
  {
    name: 'yaml',
    about: 'the YAML encoder written by hand, beside the library',
    program: ['bench/yaml.bench.ts'],
    nightly: true,
  },
  {
    name: 'map',
    about: 'the store in memory, beside a plain Map; [events]',
    program: ['bench/map-baseline.bench.ts'],
    nightly: true,
  },
  {
    name: 'history-write',
    about: 'CPU time and bytes of an archived event, for segments and for a merge; [events]',
    program: ['bench/history-write.bench.ts'],
    nightly: true,
  },
  {
    name: 'memory',
    about:
      'a million events: memory, start, pages, queries, fan-out (about 6 min, 4 GiB); [events] [load]',
    program: ['bench/memory.bench.ts'],
    nightly: true,
  },
  {
    name: 'history-read',
    about:
      'CPU of questions about history, against plain SQL and hyparquet; [--days 50] [--events 1000000]',
    program: ['bench/history-read.bench.ts'],
  },
  {
    name: 'history-load',
    about:
      'latency of creates with and without history, its lag and memory; [seconds] [creates a second]',
    needs: 'build',
    program: ['bench/history-load.bench.ts'],
  },
  {
    name: 'follow',
    about: 'CPU of a create from the watch into memory; [path of another version]',
    program: ['bench/follow.bench.ts'],
    nightly: true,
  },
  {
    name: 'page',
    about: 'the page with a million events of 7 days',
    program: ['--expose-gc', 'bench/page.bench.ts'],
  },
  {
    name: 'replica',
    about: 'memory of a replica at each step',
    needs: 'build',
    program: ['bench/replica-memory.bench.ts'],
    nightly: true,
  },
  {
    name: 'replicas',
    about: 'one to three replicas over one etcd, and the sizing model (needs h2load, about 6 min)',
    needs: 'build',
    program: ['bench/replicas.bench.ts'],
    nightly: true,
  },
  {
    name: 'mirror',
    about: 'first copy of 100,000 events, idle mirrors, lag at 500 events a second (about 6 min)',
    needs: 'build',
    program: ['bench/mirror.bench.ts'],
    nightly: true,
  },
  {
    name: 'etcd',
    about: 'memory and disk space of an event in etcd',
    program: ['bench/etcd-sizing.bench.ts'],
    nightly: true,
  },
]

export const NEEDS: Readonly<Record<Need, readonly Program[]>> = {
  build: [['tools/build.ts']],
  archive: [['tools/build.ts'], ['tools/release/dist.ts']],
  image: [['tools/build.ts'], ['tools/release/dist.ts'], ['tools/release/image.ts', '--cached']],
}

/**
 * The programs of a suite, without what it needs. With arguments, a suite that has programs runs only the
 * first: options are added to its own and override them, other arguments replace its own. For other
 * suites, words select the test files whose path contains one of them, and options (`--name=value`) go
 * to the test runner.
 */
export function programsOf(suite: Suite, args: readonly string[] = []): readonly Program[] {
  const { files = [], programs = [] } = suite
  const [first] = programs
  if (args.length === 0 || first === undefined) {
    return [...(files.length === 0 ? [] : [testProgram(suite, args)]), ...programs]
  }
  const [file = '', ...own] = first
  const hasOptions = own.some((arg) => arg.startsWith('-'))
  return [[file, ...(hasOptions ? own : []), ...args]]
}

function testProgram(suite: Suite, args: readonly string[]): Program {
  const { name, files = [], timeoutSeconds, concurrency } = suite
  const options = args.filter((arg) => arg.startsWith('-'))
  const words = args.filter((arg) => !arg.startsWith('-'))
  const selected = globSync(files, { cwd: root })
    .toSorted()
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  if (selected.length === 0) throw new Error(`${name} has no test file for ${words.join(', ')}`)
  if (suite.sharesProcess) options.push('--test-isolation=none')
  if (timeoutSeconds !== undefined) options.push(`--test-timeout=${timeoutSeconds * 1000}`)
  if (concurrency !== undefined) options.push(`--test-concurrency=${concurrency}`)
  return ['--test', ...options, ...selected]
}
