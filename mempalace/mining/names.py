"""Words that are names of something, and words that never are, as data.

Owns: the lists. A name in none of them is decided by where it stands (entities).
Never: matches anything.
Called by: entities.
"""

from __future__ import annotations

from mempalace.mining.vocabulary import words

# Programs, services and languages that developers talk about; lower case → as it is written.
TOOLS = {
    name.lower(): name
    for name in words(
        """
    AWS Android Angular Ansible Apache Azure Bash BigQuery Bitbucket Bun CMake Cargo Celery Chroma
    Claude Clerk Cloudflare Codex Copilot Cursor Cypress Datadog Debian Deno Django Docker
    DynamoDB ESLint Elasticsearch Electron Excel Express FastAPI Figma Firebase Firefox Flask
    Flutter GCP Gemini
    Git GitHub GitLab Gradle Grafana GraphQL Heroku Homebrew Hugo IntelliJ Java JavaScript Jenkins
    Jest Jira Kafka Keycloak Kotlin Kubernetes Laravel Linux MariaDB Maven MongoDB MySQL NATS
    Netlify Next.js Nginx Node.js Notion NumPy OAuth OpenAI OpenCode Oracle PHP Pandas Perl
    Playwright Poetry PostHog PostgreSQL Postgres Prometheus Puppeteer PyPI PyTorch Python
    RabbitMQ Rails React Redis Redux Ruby Rust SQLAlchemy SQLite Salesforce Sentry Slack
    Snowflake Spark Storybook Stripe Supabase Svelte Swift Tailwind TensorFlow Terraform
    TypeScript Ubuntu Unity VSCode Vercel Vite Vitest Vue Webpack WebSocket Windows Xcode Zsh
    axios esbuild ffmpeg golangci-lint iOS jq macOS mypy npm pip pnpm psql pytest ripgrep ruff
    sed tmux uv
    vim webpack yarn
    """
    )
}

# Capitalised and yet nobody: what talk about work writes large out of habit.
NOBODY = words("""
    a about access account action actions active add added additional after agent all also an
    analysis and
    any api app application approach architecture are as assistant at authentication author
    available backend background base based basic because before behavior below best better both
    branch bug bugs build built but by can case change changed changes check clean cli client
    code command
    commands comment commit complete component components config configuration confirmed consider
    content context core could create created critical current data database date day dead debug
    decision default delete deleted design details development did directory do docs
    documentation does don't done each edge edit empty end ensure environment error errors even
    event every everything example existing expected fail failed false feature features feedback
    file files final find first fix fixed flow folder follow for found from frontend full function
    functions general get given go good great had handle happy has have he hello help helper her
    here
    hi high his hook hooks how however i if image impact implement implementation important in
    info input instead interface internal is issue issues it item items its just key last latest
    let level library like line list local log logic long look low made main major make me medium
    memory message messages metadata method methods migration milestone minor missing mode model
    module my name need new next no none not note notes now null object of off ok old on once
    one only
    open option options or original other our out output overview package parser pass path pattern
    perfect phase plan please point problem process production project prompt properties pros
    cons question read ready reason recommendation refactor release remove removed rename request
    required response result results return review right risk root rule run running same save
    schema script section security see server service session set settings setup she should show
    simple since
    skip so some something source spec start state status step steps still stop storage strategy
    string
    structure subject success suggestion summary support sure system table tag task tasks team
    terminal test tests text thanks that the their them then there these they thing this those
    three ticket time title to today todo token tool tools total track true try two type types
    ui unit unknown update updated us use used user users using utility validation value values
    verify version
    view want warning was we what when where which while who why will with without work worked
    working works world would wrong yes yesterday yet you your zero
    monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december english german french spanish
    """)

# Given names that need no further sign to be a person; "Mark" and "Will" are verbs as well.
PEOPLE = words("""
    aaron adam ahmed alan alex alexander alice alina amir amy ana andrea andrew andy anna anne anton
    antonio aria arjun arthur ben benjamin bob boris brian bruno carl carla carlos carmen caroline
    charlie chen chris christian christina claire clara daniel dave david diana diego dmitri
    elena eli elias elisabeth ellen emil emily emma eric erik eva fatima felix fiona frank
    frederik gabriel george greg hana hannah hans harry heidi helen henry hugo ian igor
    ines ingrid isabel ivan jack jacob jakob james jan jane jason javier jean jenny jens jessica
    jim joan joe johan john jon jonas jonathan jordan jorge jose joseph josh juan julia julian
    julie kai karen karl karin kate katharina kevin kim klaus lara lars laura lea lena leo leon
    lily linda lisa luca lucas lucia lucy luis luke lukas maria marie mario markus marta
    martin mary matt matthew max maya mei mia michael miguel mike mila mira miriam mohamed nadia
    nick nicole nina noah nora olaf oleg olga oliver olivia omar oscar pablo paul paula pavel
    pedro peter petra philip pierre priya rachel rahul ralf ravi rebecca richard rita robert
    roman rosa ruth ryan sam samuel sandra sara sarah sebastian sergey simon sofia sophie stefan
    steve sven tanja theo thomas tim tina tobias tom toni ulrike uwe vera victor viktor vlad
    walter wei wendy yan yuki yusuf zoe
    """)
PERSON_BEFORE = words("with by from ask asked told tell thanks cc hey dear mr mrs dr")
PERSON_AFTER = words(
    "said says thinks thought wants wanted asked asks told suggested recommended prefers agreed "
    "wrote reviewed approved noticed reported complained decided mentioned"
)

EXTENSIONS = words("""
    txt md py pyi js mjs ts jsx tsx json jsonl yaml yml html css scss java kt go rs rb sh bash
    zsh fish csv
    tsv sql toml ini cfg conf lock xml c h cc cpp hpp cs swift m php pl lua r ex exs erl hs scala
    vue svelte proto graphql tf dockerfile ipynb png jpg jpeg svg pdf log db sqlite env gradle
    """)
DOMAINS = words("com org net io dev test app ai de uk eu co edu gov")
# `pip install NAME`: what follows is a package.
INSTALLERS = words("pip pip3 npm pnpm yarn brew cargo uv gem apt apt-get go poetry conda bun")
INSTALLS = words("install add get i")
