// SPDX-License-Identifier: MIT OR Apache-2.0
// A step of Jenkins (shared library): measures the agent against a deadline, keeps the results, and sets the result of the
// build. README.md says how to use it.
//
//   Map latency = tailbound(deadline: '200us', duration: '10m')
//
// Met: the step ends. Undecided: the build is unstable. Anything else: the build fails.
def call(Map options = [:]) {
    List known = ['deadline', 'duration', 'load', 'policy', 'options', 'program', 'package', 'sha256', 'version', 'results']
    for (String name in options.keySet().toList()) {
        if (!known.contains(name)) {
            error("tailbound: there is no parameter '${name}'; there are ${known.join(', ')}")
        }
    }
    String results = options.results ?: 'latency'
    List variables = []
    for (String name in known) {
        // What is not given is empty: an agent's own variable is not taken for it. withEnv would put in variables for `$`.
        String value = options[name] == null ? '' : options[name].toString()
        variables.add("LATENCY_${name.toUpperCase()}=" + value.replace('$', '$$'))
    }
    int status = -1
    String verdict = 'killed'
    try {
        // It begins with `#!`, so that Jenkins does not add -x and -e.
        withEnv(variables) {
            status = sh(returnStatus: true, label: 'tailbound', script: libraryResource('tailbound/measure.sh'))
        }
        List verdicts = ['met', 'not-met', 'usage-error', 'cannot-measure', 'internal-error', 'undecided']
        verdict = status >= 0 && status < verdicts.size() ? verdicts[status] : 'killed'
    } finally {
        archiveArtifacts artifacts: "${results}/**", allowEmptyArchive: true
        junit testResults: "${results}/run.junit.xml", allowEmptyResults: true
    }
    if (verdict == 'undecided') {
        unstable('Latency: undecided, see the report')
    } else if (verdict != 'met') {
        error("Latency: ${verdict} (exit status ${status} of tailbound)")
    }
    return [verdict: verdict, status: status, report: "${results}/run.html".toString(), run: "${results}/run.tailbound.jsonl".toString()]
}
