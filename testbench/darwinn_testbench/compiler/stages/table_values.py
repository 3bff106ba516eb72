"""Values of the tables of functions, which
`python -m darwinn_testbench.compiler.stages.tables` writes."""

from __future__ import annotations

from collections.abc import Mapping

VALUES: Mapping[str, str] = {
    "exponential": (
        "c100f301 c0ba8099 c088cccc c0457012 c007be72 bfa7d56b bf1cfb88 450a9cd8 "
        "44444c1b 42d1ffca 40c8cd94 3e109be6 463fe2a3 45b7300c 4485e1be 42b0d73e "
        "40318481 46e1d69a 4687662d 457d4b75 43d94e6b 418f56cf 4732d4a7 4701570a "
        "46163d3b 44a3d181 428bcbdf 4761aa39 473db8be 4685de3d 453827ff 434c2cc0 "
        "4778a7cd 47687a29 46c20840 45a8029b 43f71e3f 477f52db 477c1ee1 46ee21db "
        "4600c1b6 44831137 477ffeee 477ff920 46ff6401 4624ffa1 44fc2ec2"
    ),
    "inverse root": (
        "3f96b3bb 3fb1e7c8 3fd2998b 3ffa03d4 4014d792 4031c359 4054f9d5 47d5cf82 "
        "c8034407 47d9686f c73e5c3c 460801d4 47c4eac6 c7cd15e6 47900d16 c6d5f493 "
        "4581a662 47b51cb8 c79f8ed6 473d996a c66e3294 44f42c5b 47a65798 c7773b16 "
        "46f7cda4 c6034bba 44630a26 47988e1c c73eb4da 46a0c41c c58f471d 43d05dac "
        "478bb36d c71271ab 464f09b3 c51ab7a4 433ca8a6 477f7654 c6dfdcf7 4604480d "
        "c4a542dd 42a870c3 476932d0 c6aa4813 45a7ae4f c42e8bb3 421439ab"
    ),
    "sigmoid": (
        "c0c0df4e c05de39e bfd83aa8 326f6d7e 3fd83aac 405de3a1 40c0df50 41d5f7d2 "
        "413305a2 3fe2d3cb 3e00943c 3b5b9b5a 42edba78 42926663 418d235d 3ffa16d6 "
        "3daa77a5 430dbda2 42badfba 41becbae 402ae564 3dce5bd2 42fffe4f 427f986a "
        "bf103902 c0d22a0f bfa06885 430000d8 427f986a 3f103902 c0d22a0f 3fa06885 "
        "42e484bb 42badfbb c1becbb1 402ae56c bdce5bea 430922c6 42926660 c18d2359 "
        "3ffa16cd bdaa779d 43654106 4133059d bfe2d3c4 3e009438 bb5b9b52"
    ),
    "tanh": (
        "3eadc562 3f3ef0c1 3f914798 3fd612bb 4013d8a8 40427790 4080ad53 3901bd1e "
        "42fff6a5 3edf789a c239767f 4151830c bd208c4a 43001341 3fcf946d c24fe304 "
        "419f2c1e c09d313f 4319271b c23d5478 c10f6dbe 40b14b6a c19030cd 43476fa3 "
        "c2da1ff7 41df2ec8 c0317147 c125e399 4337acab c2c249ed 41c0146d c01459b7 "
        "4205b330 42d8470a c2404bdc 411c7ca1 bf439166 42a7bcee 422606af c16f0e93 "
        "401b8aca be19dd64 42eacbe7 40f887c4 c009d544 3e88ec2d bc4d431f"
    ),
}
"""Words of float32: seven bounds, then five coefficients of each piece."""
